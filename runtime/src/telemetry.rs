//! Logs: to standard error, as text or as JSON lines.

use std::io::IsTerminal as _;

use tracing_subscriber::EnvFilter;

/// How to log. Flatten into a program's arguments.
#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = "Logging")]
pub struct LogArgs {
    /// Form of the log lines
    #[arg(long, value_enum, default_value_t = LogFormat::Text, env = "ROLLBACK_LOG_FORMAT")]
    pub log_format: LogFormat,

    /// Least level to log (error, warn, info, debug, trace), or a list that sets
    /// the level for some parts, as in info,kube=debug
    #[arg(long, default_value = "info", env = "ROLLBACK_LOG_LEVEL")]
    pub log_level: String,
}

/// The form of the log lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum LogFormat {
    /// For people.
    Text,
    /// One JSON object on each line.
    Json,
}

/// Why logging could not be set up.
#[derive(Debug, thiserror::Error)]
pub enum TelemetryError {
    /// The level is not one.
    #[error("--log-level {given:?} is not a log level: {source}; use error, warn, info, debug or trace")]
    Level {
        /// What was given.
        given: String,
        /// What the parser said.
        source: tracing_subscriber::filter::ParseError,
    },
    /// Something else logs already.
    #[error("logging was set up twice: {0}")]
    Twice(Box<dyn std::error::Error + Send + Sync>),
}

/// Sends this process's events to standard error. Fails on an unknown level, or
/// when called twice.
pub fn init(args: &LogArgs) -> Result<(), TelemetryError> {
    let builder = tracing_subscriber::fmt()
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal())
        .with_env_filter(filter(&args.log_level)?);
    match args.log_format {
        LogFormat::Text => builder.try_init(),
        LogFormat::Json => builder.json().flatten_event(true).try_init(),
    }
    .map_err(TelemetryError::Twice)
}

fn filter(level: &str) -> Result<EnvFilter, TelemetryError> {
    EnvFilter::builder()
        .parse(level)
        .map_err(|source| TelemetryError::Level { given: level.to_owned(), source })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrong_level_is_named() {
        assert!(filter("info,kube_client=debug").is_ok());
        let error = filter("kube_client=loud").unwrap_err().to_string();
        assert!(error.contains("kube_client=loud"), "{error}");
    }
}
