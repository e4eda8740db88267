//! The only place that writes. Data to stdout, everything else to stderr; colour and redrawn lines on terminals only.

use std::io::{self, ErrorKind, IsTerminal as _, Write};

use anstream::AutoStream;
use anstyle::{AnsiColor, Style};

use crate::columns::clean_lines;
use crate::failure::{Failure, Kind};

const BAD: Style = AnsiColor::Red.on_default().bold();
const ODD: Style = AnsiColor::Yellow.on_default().bold();

/// Where lines of progress go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sink {
    /// They are what was asked for.
    Out,
    /// They come with it.
    Err,
}

/// Writes for a person or a program.
pub(crate) struct Printer {
    out: Stream,
    err: Stream,
    interactive: bool,
}

/// One of the two streams.
struct Stream {
    to: Box<dyn Write>,
    /// The reader went away: that is its right, and writing to it succeeds without effect.
    closed: bool,
}

impl Printer {
    /// The process's own streams.
    pub(crate) fn system() -> Self {
        Self {
            out: Stream::new(AutoStream::auto(io::stdout())),
            err: Stream::new(AutoStream::auto(io::stderr())),
            interactive: io::stdin().is_terminal() && io::stderr().is_terminal(),
        }
    }

    /// Whether a person can be asked, and lines may be redrawn.
    pub(crate) fn is_interactive(&self) -> bool {
        self.interactive
    }

    /// Data, with a line end unless it has one.
    pub(crate) fn data(&mut self, text: &str) -> Result<(), Failure> {
        self.out.line(text).map_err(|error| cannot_write("stdout", &error))
    }

    /// Bytes as they are.
    pub(crate) fn raw(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        self.out.write(bytes).map_err(|error| cannot_write("stdout", &error))
    }

    /// A line about what happens.
    pub(crate) fn note(&mut self, text: &str) -> Result<(), Failure> {
        self.err.line(&clean_lines(text)).map_err(|error| cannot_write("stderr", &error))
    }

    /// A line of progress.
    pub(crate) fn progress(&mut self, sink: Sink, text: &str) -> Result<(), Failure> {
        match sink {
            Sink::Out => self.data(&clean_lines(text)),
            Sink::Err => self.note(text),
        }
    }

    /// A question: no line end.
    pub(crate) fn ask(&mut self, text: &str) -> Result<(), Failure> {
        self.err.write(clean_lines(text).as_bytes()).map_err(|error| cannot_write("stderr", &error))
    }

    /// A warning of the API server.
    pub(crate) fn warning(&mut self, text: &str) -> Result<(), Failure> {
        let text = format!("{ODD}Warning:{ODD:#} {}", clean_lines(text));
        self.err.line(&text).map_err(|error| cannot_write("stderr", &error))
    }

    /// The last word. An error of writing it has nowhere to go.
    pub(crate) fn failure(&mut self, failure: &Failure) {
        let style = match failure.kind {
            Kind::Error | Kind::Refused | Kind::Failed => BAD,
            Kind::StillRunning
            | Kind::StoppedWatching
            | Kind::Superseded
            | Kind::Cancelled
            | Kind::NotNeeded => ODD,
        };
        let text = format!("{style}{}{style:#} {}", failure.kind.label(), clean_lines(&failure.text));
        let _ = self.err.line(&text);
    }

    /// Text that clap rendered, with its own styles.
    pub(crate) fn rendered(&mut self, text: &str, sink: Sink) {
        let stream = match sink {
            Sink::Out => &mut self.out,
            Sink::Err => &mut self.err,
        };
        // Help and usage errors are the last word too.
        let _ = stream.line(text);
    }
}

impl Stream {
    fn new(to: impl Write + 'static) -> Self {
        Self { to: Box::new(to), closed: false }
    }

    fn line(&mut self, text: &str) -> io::Result<()> {
        let end = if text.ends_with('\n') { "" } else { "\n" };
        self.write(format!("{text}{end}").as_bytes())
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        if self.closed {
            return Ok(());
        }
        match self.to.write_all(bytes).and_then(|()| self.to.flush()) {
            Err(error) if error.kind() == ErrorKind::BrokenPipe => {
                self.closed = true;
                Ok(())
            }
            result => result,
        }
    }
}

fn cannot_write(what: &str, error: &io::Error) -> Failure {
    Failure::error(format!("cannot write to {what}: {error}"))
}

#[cfg(test)]
pub(crate) mod tests {
    use std::cell::RefCell;
    use std::rc::Rc;

    use super::*;

    /// What was printed.
    #[derive(Clone, Default)]
    pub(crate) struct Captured(Rc<RefCell<Vec<u8>>>);

    impl Captured {
        pub(crate) fn text(&self) -> String {
            String::from_utf8(self.0.borrow().clone()).unwrap()
        }
    }

    impl Write for Captured {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.borrow_mut().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    /// A printer into memory: stdout and stderr, without colour.
    pub(crate) fn captured() -> (Printer, Captured, Captured) {
        let (out, err) = (Captured::default(), Captured::default());
        let printer = Printer { out: plain(out.clone()), err: plain(err.clone()), interactive: false };
        (printer, out, err)
    }

    fn plain(to: Captured) -> Stream {
        Stream::new(anstream::StripStream::new(Box::new(to) as Box<dyn Write>))
    }

    /// Fails every write.
    struct Broken(ErrorKind);

    impl Write for Broken {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(self.0.into())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn broken(kind: ErrorKind) -> Printer {
        Printer { out: Stream::new(Broken(kind)), err: Stream::new(Broken(kind)), interactive: false }
    }

    #[test]
    fn data_and_words_go_their_own_ways() {
        let (mut printer, out, err) = captured();
        printer.data("data").unwrap();
        printer.note("words\n").unwrap();
        printer.warning("odd").unwrap();
        printer.failure(&Failure::refused("no.\nType this."));
        assert_eq!(out.text(), "data\n");
        assert_eq!(err.text(), "words\nWarning: odd\nRefused: no.\nType this.\n");
    }

    #[test]
    fn what_objects_say_cannot_steer_the_terminal() {
        let (mut printer, _, err) = captured();
        printer.note("a\u{1b}]0;title\u{7}b").unwrap();
        printer.failure(&Failure::error("x\u{1b}[2J"));
        assert_eq!(err.text(), "a ]0;title b\nError: x [2J\n");
    }

    #[test]
    fn a_reader_that_went_away_is_no_error() {
        let mut printer = broken(ErrorKind::BrokenPipe);
        assert_eq!(printer.data("x"), Ok(()));
        assert_eq!(printer.note("x"), Ok(()));
    }

    #[test]
    fn a_full_disk_is_one() {
        let failure = broken(ErrorKind::StorageFull).data("x").unwrap_err();
        assert_eq!(failure.text, "cannot write to stdout: no storage space");
    }
}
