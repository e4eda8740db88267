//! Free TCP ports on the loopback interface.

use std::collections::HashSet;
use std::hash::{BuildHasher, RandomState};
use std::net::TcpListener;
use std::sync::{Mutex, PoisonError};

use anyhow::{Context, Result};

/// Below the range from which systems take the local ports of outgoing connections (32768 on
/// Linux). A server that is killed and started again on the same port would otherwise find it
/// taken by a client's connection, or a client that keeps trying would connect to itself.
const RANGE: std::ops::Range<u16> = 20_000..32_000;

/// Ports handed out by this process already; a server may not have bound its port yet.
static GIVEN: Mutex<Option<HashSet<u16>>> = Mutex::new(None);

/// A TCP port that nothing listens on now. Never returns the same port twice in one process.
///
/// Fails when every port of 20000 to 31999 is taken.
pub fn free_port() -> Result<u16> {
    let mut given = GIVEN.lock().unwrap_or_else(PoisonError::into_inner);
    let given = given.get_or_insert_default();
    let count = RANGE.end - RANGE.start;
    // RandomState is seeded differently in every process, so that test runs side by side rarely meet.
    let seed = RandomState::new().hash_one(std::process::id());
    let first = u16::try_from(seed % u64::from(count)).unwrap_or_default();
    (0..count)
        .map(|step| RANGE.start + (first + step) % count)
        .find(|port| !given.contains(port) && TcpListener::bind(("127.0.0.1", *port)).is_ok())
        .inspect(|port| {
            given.insert(*port);
        })
        .context("no free TCP port between 20000 and 31999 on 127.0.0.1: end the programs that hold them")
}
