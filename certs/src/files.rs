//! The certificates as files, under the names Kubernetes gives them in a Secret
//! of type `kubernetes.io/tls`.

use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use crate::{Bundle, CertError};

/// File of the authority's certificate.
pub const CA_FILE: &str = "ca.crt";
/// File of the server's certificate.
pub const CERT_FILE: &str = "tls.crt";
/// File of the server's private key, readable by its owner only.
pub const KEY_FILE: &str = "tls.key";

impl Bundle {
    /// Writes the three files into `dir`, which must exist. Each file is
    /// replaced in one step, so a reader never sees half of one; between two
    /// files it may see a pair that does not match, and tries again. Fails with
    /// the name of the file that could not be written.
    pub fn write_files(&self, dir: &Path) -> Result<(), CertError> {
        let files = [
            (KEY_FILE, &self.key_pem, 0o600),
            (CERT_FILE, &self.cert_pem, 0o644),
            (CA_FILE, &self.ca_pem, 0o644),
        ];
        for (file, text, mode) in files {
            replace(dir, file, text, mode).map_err(|source| CertError::Write { file, source })?;
        }
        // The renames themselves must reach the disk too.
        File::open(dir)
            .and_then(|dir| dir.sync_all())
            .map_err(|source| CertError::Write { file: CA_FILE, source })
    }
}

fn replace(dir: &Path, file: &str, text: &str, mode: u32) -> io::Result<()> {
    let unfinished = dir.join(format!(".{file}.{}", std::process::id()));
    let written =
        write_new(&unfinished, text, mode).and_then(|()| std::fs::rename(&unfinished, dir.join(file)));
    if written.is_err() {
        // The first error is the one to report; what is left behind is a
        // hidden file, and there may be none.
        let _ = std::fs::remove_file(&unfinished);
    }
    written
}

fn write_new(path: &Path, text: &str, mode: u32) -> io::Result<()> {
    // The mode counts only when the file is created, so it must not exist.
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        Ok(()) | Err(_) => {}
    }
    let mut file = OpenOptions::new().write(true).create_new(true).mode(mode).open(path)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()
}
