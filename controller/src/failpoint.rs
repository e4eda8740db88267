//! Points at which a test can make the process die: right before and right after each write, to the API server
//! or to a backend. Debug builds only; nothing of it is in a release build.
//!
//! `ROLLBACK_CRASH_BEFORE_WRITE=N` and `ROLLBACK_CRASH_AFTER_WRITE=N` abort the process at its N-th write (from 1);
//! `ROLLBACK_LOG_WRITES=1` logs every write with its number. Events are not counted: they decide nothing.

#[cfg(debug_assertions)]
mod armed {
    use std::sync::OnceLock;
    use std::sync::atomic::{AtomicU64, Ordering};

    struct Plan {
        before: Option<u64>,
        after: Option<u64>,
        log: bool,
    }

    static PLAN: OnceLock<Plan> = OnceLock::new();
    static BEGUN: AtomicU64 = AtomicU64::new(0);
    static DONE: AtomicU64 = AtomicU64::new(0);

    fn plan() -> &'static Plan {
        let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse().ok());
        PLAN.get_or_init(|| Plan {
            before: number("ROLLBACK_CRASH_BEFORE_WRITE"),
            after: number("ROLLBACK_CRASH_AFTER_WRITE"),
            log: std::env::var_os("ROLLBACK_LOG_WRITES").is_some_and(|value| value == "1"),
        })
    }

    fn die(number: u64, what: &str, when: &str) -> ! {
        tracing::error!(number, what, "aborting {when} this write, as a test asked");
        std::process::abort();
    }

    pub(super) fn write(what: &str) {
        let number = BEGUN.fetch_add(1, Ordering::SeqCst) + 1;
        let plan = plan();
        if plan.log {
            tracing::info!(number, what, "write");
        }
        if plan.before == Some(number) {
            die(number, what, "before");
        }
    }

    pub(super) fn written(what: &str) {
        let number = DONE.fetch_add(1, Ordering::SeqCst) + 1;
        if plan().after == Some(number) {
            die(number, what, "after");
        }
    }
}

/// Call right before every write. `what` names it for people: `rollback status`, `pointer`, `deployment/web`.
pub fn write(what: &str) {
    #[cfg(debug_assertions)]
    armed::write(what);
    #[cfg(not(debug_assertions))]
    let _ = what;
}

/// Call right after the same write, whether it succeeded or not.
pub fn written(what: &str) {
    #[cfg(debug_assertions)]
    armed::written(what);
    #[cfg(not(debug_assertions))]
    let _ = what;
}
