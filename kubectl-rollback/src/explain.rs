//! Errors of the API server, the network and the credentials in words that say what to do next.

use std::error::Error as StdError;
use std::time::Duration;

use kube::client::AuthError;
use kube::core::Status;

use crate::clock::span;
use crate::failure::Failure;
use crate::session::Place;

/// An error of a call. `what` is what the call is about, as in `list releases`.
pub(crate) fn call(what: &str, error: &kube::Error, place: &Place) -> Failure {
    match error {
        kube::Error::Api(status) => api(what, status, place),
        kube::Error::Auth(error) => credentials(error, place),
        kube::Error::SerdeError(error) => Failure::error(format!(
            "cannot {what}: the answer of {} is not what this version reads ({error}). Compare the versions: \
             kubectl rollback version, kubectl get crd rollbacks.deploy.crd.gocardless.com",
            place.server
        )),
        other => {
            if let Some(error) = find::<AuthError>(other) {
                return credentials(error, place);
            }
            unreachable(other, place)
        }
    }
}

/// A call that took too long.
pub(crate) fn timed_out(what: &str, deadline: Duration, place: &Place) -> Failure {
    let seconds = deadline.as_secs();
    let limit = if seconds == 0 {
        format!("{}ms", deadline.as_millis())
    } else {
        span(seconds.try_into().unwrap_or(i64::MAX))
    };
    Failure::error(format!(
        "cannot {what}: {} did not answer within {limit}. Wait longer with --request-timeout; is the cluster up? kubectl version",
        place.server
    ))
}

/// Whether a 404 is about one object; otherwise the kind itself is not served.
pub(crate) fn names_an_object(status: &Status) -> bool {
    status.details.as_ref().is_some_and(|details| !details.name.is_empty())
}

fn api(what: &str, status: &Status, place: &Place) -> Failure {
    let message = status.message.trim();
    match status.code {
        401 => Failure::error(format!(
            "{} does not accept your credentials{}. Log in again; see who you are with kubectl auth whoami",
            place.server,
            context(place)
        )),
        403 | 422 if denied(message).is_some() => Failure::refused(denied(message).unwrap_or_default()),
        403 => forbidden(message),
        404 if !names_an_object(status) => Failure::error(format!(
            "the rollback system is not installed on {}{}: its kinds (deploy.crd.gocardless.com/v1alpha1) are not served.\n\
             Is it the right cluster? Others: kubectl config get-contexts",
            place.cluster,
            context(place)
        )),
        422 => Failure::refused(invalid(message)),
        429 => Failure::error(format!(
            "cannot {what}: {} is overloaded and asks to try again later",
            place.server
        )),
        500.. if message.contains("failed calling webhook") => Failure::error(format!(
            "cannot {what}: the rollback webhook does not answer, and without it nothing is admitted ({}).\n\
             Look at it: kubectl -n rollback-system get pods,endpointslices",
            last_cause(message)
        )),
        code => Failure::error(format!("cannot {what}: {message} ({code})")),
    }
}

/// What our webhook said, out of what the API server makes of it.
fn denied(message: &str) -> Option<&str> {
    let rest = message.strip_prefix("admission webhook ")?;
    rest.split_once(" denied the request: ").map(|(_, sentence)| sentence)
}

/// `User "X" cannot VERB resource "R" in API group "G" in the namespace "N"` in fewer words, with the role that helps.
fn forbidden(message: &str) -> Failure {
    let after = |mark: &str| {
        let (_, rest) = message.split_once(mark)?;
        rest.split_once('"').map(|(value, _)| value)
    };
    let verb =
        message.split_once("\" cannot ").and_then(|(_, rest)| rest.split_once(' ')).map(|(verb, _)| verb);
    match (after("User \""), verb, after("resource \"")) {
        (Some(user), Some(verb), Some(resource)) => {
            let namespace = match after("in the namespace \"") {
                Some(namespace) => format!("in namespace {namespace}"),
                None => "in all namespaces".to_owned(),
            };
            let role = if matches!(verb, "get" | "list" | "watch") {
                "rollback-viewer"
            } else {
                "rollback-responder"
            };
            Failure::refused(format!(
                "{user} may not {verb} {resource} {namespace}. Ask for the ClusterRole {role}."
            ))
        }
        _ => Failure::refused(message.to_owned()),
    }
}

/// A violation of the schema without the kind's long name.
fn invalid(message: &str) -> String {
    match message.split_once(" is invalid: ") {
        Some((_, why)) => format!("the API server does not accept the object: {why}"),
        None => message.to_owned(),
    }
}

fn last_cause(message: &str) -> &str {
    message.rsplit(": ").next().unwrap_or(message)
}

/// The credentials of the kubeconfig do not lead to anything. Never shows what a credential plugin printed: a token may be in it.
pub(crate) fn credentials(error: &AuthError, place: &Place) -> Failure {
    let why = match error {
        AuthError::AuthExecStart(error) if error.kind() == std::io::ErrorKind::NotFound => {
            "the credential plugin of its user is not installed, or not in PATH".to_owned()
        }
        AuthError::AuthExecStart(error) => {
            format!("the credential plugin of its user cannot be started: {}", plain(error))
        }
        AuthError::AuthExecRun { out, .. } => {
            let said = String::from_utf8_lossy(&out.stderr);
            let said = said
                .lines()
                .rev()
                .find(|line| !line.trim().is_empty())
                .map(|line| format!(": {}", line.trim()));
            format!("the credential plugin of its user failed ({}){}", out.status, said.unwrap_or_default())
        }
        AuthError::AuthExecParse(_) => {
            "the credential plugin of its user did not print an ExecCredential".to_owned()
        }
        AuthError::ExecPluginFailed => "the credential plugin of its user gave no credentials".to_owned(),
        AuthError::MissingCommand => "users[].user.exec has no command".to_owned(),
        AuthError::ReadTokenFile(error, path) => {
            format!("the token file {} cannot be read: {}", path.display(), plain(error))
        }
        other => other.to_string(),
    };
    Failure::error(format!(
        "no credentials for {}{}: {why}. Try the same with kubectl: kubectl auth whoami",
        place.server,
        context(place)
    ))
}

/// The server was not reached, or the connection broke.
fn unreachable(error: &kube::Error, place: &Place) -> Failure {
    let cause = root(error);
    let text = plain(&cause);
    let hint = if text.contains("UnknownIssuer") || text.contains("self-signed") {
        "its certificate is signed by an authority that the kubeconfig does not name (--certificate-authority)"
    } else if text.contains("NotValidForName") || text.contains("not valid for name") {
        "its certificate is for another name (--tls-server-name)"
    } else if text.contains("Expired") || text.contains("certificate expired") {
        "its certificate has expired"
    } else {
        ""
    };
    let why = if hint.is_empty() { text } else { hint.to_owned() };
    Failure::error(format!(
        "cannot reach the API server {}{}: {why}. Is the cluster up, and do you need a VPN? kubectl version",
        place.server,
        context(place)
    ))
}

fn context(place: &Place) -> String {
    if place.context.is_empty() { String::new() } else { format!(" (context {})", place.context) }
}

/// The innermost error, in its own words.
pub(crate) fn root(error: &(dyn StdError + 'static)) -> String {
    let mut inner = error;
    while let Some(source) = inner.source() {
        inner = source;
    }
    inner.to_string()
}

/// Without the number that only the system's programmers read.
pub(crate) fn plain(error: &impl ToString) -> String {
    let text = error.to_string();
    let text = text.split(" (os error ").next().unwrap_or_default();
    let mut letters = text.chars();
    // `Connection refused` reads as part of a sentence; `UnknownIssuer` does not.
    match (letters.next(), text.contains(' ')) {
        (Some(first), true) => first.to_lowercase().chain(letters).collect(),
        _ => text.to_owned(),
    }
}

/// The first error of a type along the chain of causes.
fn find<'a, E: StdError + 'static>(error: &'a (dyn StdError + 'static)) -> Option<&'a E> {
    let mut inner = Some(error);
    while let Some(error) = inner {
        if let Some(found) = error.downcast_ref::<E>() {
            return Some(found);
        }
        inner = error.source();
    }
    None
}

#[cfg(test)]
mod tests;
