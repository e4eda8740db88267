//! The webhook process.

fn main() {}
