//! The controller process.

fn main() {}
