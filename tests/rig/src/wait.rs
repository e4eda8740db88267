//! Waiting for a condition, with a failure text that says what was last seen.

use std::future::Future;
use std::time::{Duration, Instant};

use anyhow::{Result, anyhow};

/// Between two looks: short at first, so that a quick success costs nothing.
const FIRST_PAUSE: Duration = Duration::from_millis(20);
const LONGEST_PAUSE: Duration = Duration::from_millis(250);

/// Calls `look` until it returns `Ok`, for at most `deadline`.
///
/// `look` says in its error why the condition does not hold yet; on a timeout the error names
/// `what` was waited for and that last reason.
pub async fn eventually<T, F, Fut>(deadline: Duration, what: &str, mut look: F) -> Result<T>
where
    F: FnMut() -> Fut,
    Fut: Future<Output = Result<T>>,
{
    let started = Instant::now();
    let mut pause = FIRST_PAUSE;
    let mut reason = anyhow!("the first look did not finish");
    loop {
        let left = deadline.saturating_sub(started.elapsed());
        match tokio::time::timeout(left, look()).await {
            Ok(Ok(value)) => return Ok(value),
            Ok(Err(error)) => reason = error,
            // The look itself hangs: the reason of the one before says more.
            Err(_elapsed) => {}
        }
        if started.elapsed() + pause >= deadline {
            return Err(anyhow!("waited {deadline:?} for {what}; last seen: {reason:#}"));
        }
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    #[tokio::test]
    async fn returns_the_value_of_the_first_success() {
        let looks = Cell::new(0);
        let seen = eventually(Duration::from_secs(30), "three looks", || {
            looks.set(looks.get() + 1);
            let look = looks.get();
            async move { if look == 3 { Ok(look) } else { Err(anyhow!("only {look}")) } }
        })
        .await;
        assert_eq!(seen.unwrap(), 3);
    }

    #[tokio::test]
    async fn names_what_and_the_last_reason_on_timeout() {
        let failed = eventually(Duration::from_millis(60), "a pod", || async {
            Err::<(), _>(anyhow!("0 of 1 ready"))
        })
        .await;
        assert_eq!(failed.unwrap_err().to_string(), "waited 60ms for a pod; last seen: 0 of 1 ready");
    }
}
