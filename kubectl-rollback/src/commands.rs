//! One file for each subcommand.

pub(crate) mod cancel;
pub(crate) mod completion;
pub(crate) mod diff;
pub(crate) mod history;
pub(crate) mod list;
pub(crate) mod signature;
pub(crate) mod start;
pub(crate) mod status;
pub(crate) mod version;

use crate::clock::Clock;
use crate::printer::Printer;
use crate::session::Session;

/// What a command that talks to the cluster works with.
pub(crate) struct Context<'a> {
    /// The cluster.
    pub(crate) session: &'a Session,
    /// The person.
    pub(crate) printer: &'a mut Printer,
    /// The time.
    pub(crate) clock: &'a Clock,
}
