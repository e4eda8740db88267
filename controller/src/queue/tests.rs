//! The queue with a clock of its own.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use prometheus_client::registry::Registry;
use tokio::sync::{Notify, mpsc as channel};

use super::*;
use crate::error::Stopped;

fn key(target: &str) -> TargetKey {
    TargetKey::new("shop", target)
}

fn running(workers: usize, stop: &CancellationToken) -> Running {
    Running {
        name: "test",
        workers,
        stop: stop.clone(),
        drain: Duration::from_secs(5),
        metrics: Metrics::new(&mut Registry::default()),
    }
}

/// Never two passes over one target at a time, never more than there are workers, and no request is lost.
#[tokio::test(start_paused = true)]
async fn one_pass_a_target_and_as_many_as_there_are_workers() {
    let stop = CancellationToken::new();
    let (queue, requests) = Queue::new();
    let busy: Arc<Mutex<HashSet<TargetKey>>> = Arc::default();
    let most = Arc::new(AtomicUsize::new(0));
    let (done, mut passes) = channel::unbounded_channel();
    let (busy_in, most_in) = (Arc::clone(&busy), Arc::clone(&most));
    let task = tokio::spawn(run(running(3, &stop), requests, move |key| {
        let (busy, most, done) = (Arc::clone(&busy_in), Arc::clone(&most_in), done.clone());
        async move {
            assert!(busy.lock().unwrap().insert(key.clone()), "two passes over {key}");
            most.fetch_max(busy.lock().unwrap().len(), Ordering::SeqCst);
            tokio::time::sleep(Duration::from_millis(50)).await;
            busy.lock().unwrap().remove(&key);
            done.send(key).unwrap();
            Ok(Next::Idle)
        }
    }));
    for target in ["a", "b", "c", "d", "e"] {
        queue.now(&key(target));
        queue.now(&key(target));
    }
    let mut first: Vec<TargetKey> = Vec::new();
    for _ in 0..5 {
        first.push(passes.recv().await.unwrap());
    }
    first.sort();
    assert_eq!(first, ["a", "b", "c", "d", "e"].map(key), "asked for twice before it began: one pass");
    assert_eq!(most.load(Ordering::SeqCst), 3);
    // Asked for during its pass: one more pass after it.
    queue.now(&key("a"));
    tokio::time::sleep(Duration::from_millis(10)).await;
    queue.now(&key("a"));
    assert_eq!(passes.recv().await, Some(key("a")));
    assert_eq!(passes.recv().await, Some(key("a")));
    stop.cancel();
    task.await.unwrap().unwrap();
}

#[tokio::test(start_paused = true)]
async fn comes_back_when_the_pass_says_so_and_after_a_failure() {
    let stop = CancellationToken::new();
    let (queue, requests) = Queue::new();
    let begun = Instant::now();
    let (sender, mut times) = channel::unbounded_channel();
    let count = Arc::new(AtomicUsize::new(0));
    let task = tokio::spawn(run(running(1, &stop), requests, move |_| {
        let (sender, count) = (sender.clone(), Arc::clone(&count));
        async move {
            sender.send(begun.elapsed()).unwrap();
            match count.fetch_add(1, Ordering::SeqCst) {
                0 => Ok(Next::After(Duration::from_secs(30))),
                1 | 2 => Err(PassError::Other("no luck".into())),
                _ => Ok(Next::Idle),
            }
        }
    }));
    queue.now(&key("a"));
    let mut at = Vec::new();
    for _ in 0..4 {
        at.push(times.recv().await.unwrap());
    }
    let gaps: Vec<Duration> = at.windows(2).map(|pair| pair[1].saturating_sub(pair[0])).collect();
    assert!(gaps[0] >= Duration::from_secs(30) && gaps[0] < Duration::from_secs(31), "{gaps:?}");
    assert!(gaps[1] >= Duration::from_millis(100) && gaps[1] <= Duration::from_millis(205), "{gaps:?}");
    assert!(gaps[2] >= Duration::from_millis(200) && gaps[2] <= Duration::from_millis(405), "{gaps:?}");
    stop.cancel();
    task.await.unwrap().unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_pass_under_way_may_end_when_the_queue_is_stopped() {
    let stop = CancellationToken::new();
    let (queue, requests) = Queue::new();
    let (begun, ended) = (Arc::new(Notify::new()), Arc::new(AtomicUsize::new(0)));
    let (begun_in, ended_in) = (Arc::clone(&begun), Arc::clone(&ended));
    let task = tokio::spawn(run(running(2, &stop), requests, move |_| {
        let (begun, ended) = (Arc::clone(&begun_in), Arc::clone(&ended_in));
        async move {
            begun.notify_one();
            tokio::time::sleep(Duration::from_secs(2)).await;
            ended.fetch_add(1, Ordering::SeqCst);
            Err(PassError::Stopped(Stopped::ShuttingDown))
        }
    }));
    queue.now(&key("a"));
    begun.notified().await;
    stop.cancel();
    queue.now(&key("b"));
    task.await.unwrap().unwrap();
    assert_eq!(ended.load(Ordering::SeqCst), 1, "the pass over a ended, none over b began");
}

#[tokio::test]
async fn a_panic_ends_the_queue() {
    let (queue, requests) = Queue::new();
    queue.now(&key("a"));
    let stop = CancellationToken::new();
    let broken = run(running(1, &stop), requests, |_| async { panic!("out of order") }).await.unwrap_err();
    assert!(broken.to_string().starts_with("a test pass broke off: "), "{broken}");
}

#[test]
fn the_wait_after_failures_doubles_up_to_a_minute() {
    assert_eq!(retry_after(0, 0.0), Duration::from_millis(100));
    assert_eq!(retry_after(0, 1.0), Duration::from_millis(200));
    assert_eq!(retry_after(3, 1.0), Duration::from_millis(1600));
    assert_eq!(retry_after(u32::MAX, 1.0), LONGEST_RETRY);
    assert_eq!(
        Next::After(Duration::from_secs(3)).earlier(Next::After(Duration::from_secs(2))),
        Next::After(Duration::from_secs(2))
    );
    assert_eq!(Next::Idle.earlier(Next::After(Duration::ZERO)), Next::After(Duration::ZERO));
}
