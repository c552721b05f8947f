//! Approvals that a person gives while another process uses the folder: a file for each in `requests/`, which that process
//! takes, answers beside it, and removes. Who can write the folder is who could write the registry.

use std::fs::{self, DirBuilder};
use std::io::{self, Write as _};
use std::os::unix::fs::DirBuilderExt as _;

use camino::{Utf8Path, Utf8PathBuf};
use serde::{Deserialize, Serialize};
use tempfile::NamedTempFile;

use super::{State, StateError, folder};

/// The folder of requests.
const FOLDER: &str = "requests";

/// The largest request or answer that is read, in bytes.
const LARGEST: u64 = 64 * 1024;

/// What a person asks the process for that uses the folder: to approve something.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Request {
    /// What is approved, as a plan names it.
    pub approve: String,
    /// Who approves it.
    pub by: String,
}

/// What came of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Answer {
    /// Whether it was done.
    pub done: bool,
    /// What was done, or why it wasn't, as a sentence without a full stop.
    pub said: String,
    /// What to do next; none where nothing is.
    #[serde(default)]
    pub hint: Option<String>,
}

/// A request that lies in the folder. It goes with this.
pub struct Asked {
    path: Utf8PathBuf,
}

/// The process that uses a state folder, if one does.
///
/// # Errors
/// When that can't be told.
pub fn holder(dir: &Utf8Path) -> Result<Option<StateError>, StateError> {
    folder::holder(dir)
}

/// Asks the process that uses a folder.
///
/// # Errors
/// When the request can't be written.
pub fn ask(dir: &Utf8Path, request: &Request) -> Result<Asked, StateError> {
    let folder = dir.join(FOLDER);
    match DirBuilder::new().mode(0o700).create(&folder) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
            return Err(StateError::io("make", &folder)(error));
        }
        _ => {}
    }
    let path = folder.join(format!("{}.request", uuid::Uuid::now_v7()));
    write(&path, request)?;
    Ok(Asked { path })
}

impl Asked {
    /// The answer; none while there is none.
    ///
    /// # Errors
    /// When it can't be read.
    pub fn answer(&self) -> Result<Option<Answer>, StateError> {
        let path = self.path.with_extension("answer");
        let answer = read(&path)?;
        Ok(answer)
    }
}

impl Drop for Asked {
    fn drop(&mut self) {
        // What is left behind is removed by who answers.
        let _ = fs::remove_file(&self.path);
        let _ = fs::remove_file(self.path.with_extension("answer"));
    }
}

impl State {
    /// What people ask for, each with its file. What nobody can read is removed.
    ///
    /// # Errors
    /// When the folder can't be read.
    pub fn requests(&self) -> Result<Vec<(Utf8PathBuf, Request)>, StateError> {
        let mut requests = Vec::new();
        for path in requested(self.lock.dir())? {
            match read(&path)? {
                Some(request) => requests.push((path, request)),
                None => remove(&path)?,
            }
        }
        Ok(requests)
    }

    /// The files of what people ask for.
    pub fn requested(&self) -> Vec<Utf8PathBuf> {
        requested(self.lock.dir()).unwrap_or_default()
    }

    /// Answers a request.
    ///
    /// # Errors
    /// When the answer can't be written.
    pub fn answer(&self, request: &Utf8Path, answer: &Answer) -> Result<(), StateError> {
        // Who asked and went away reads no answer.
        if request.exists() {
            write(&request.with_extension("answer"), answer)?;
        }
        remove(request)
    }
}

fn requested(dir: &Utf8Path) -> Result<Vec<Utf8PathBuf>, StateError> {
    let folder = dir.join(FOLDER);
    let entries = match folder.read_dir_utf8() {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(StateError::io("list", &folder)(error)),
    };
    let paths = entries.filter_map(|entry| Some(entry.ok()?.into_path()));
    let mut paths: Vec<Utf8PathBuf> = paths.filter(|path| path.extension() == Some("request")).collect();
    paths.sort();
    Ok(paths)
}

/// Reads a file; none where there is none, or none that can be understood.
fn read<T: for<'de> Deserialize<'de>>(path: &Utf8Path) -> Result<Option<T>, StateError> {
    let Some(found) = folder::plain_file(path)? else { return Ok(None) };
    if found.len() > LARGEST {
        return Ok(None);
    }
    match fs::read(path) {
        Ok(bytes) => Ok(serde_json::from_slice(&bytes).ok()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(StateError::io("read", path)(error)),
    }
}

fn write(path: &Utf8Path, what: &impl Serialize) -> Result<(), StateError> {
    let put = || {
        let folder = path.parent().unwrap_or(path);
        // A temporary file is made for its owner only.
        let mut file = NamedTempFile::new_in(folder)?;
        file.write_all(&serde_json::to_vec(what)?)?;
        file.persist(path).map_err(|error| error.error)
    };
    put().map(drop).map_err(StateError::io("write", path))
}

fn remove(path: &Utf8Path) -> Result<(), StateError> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(StateError::io("remove", path)(error)),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_answered_once_and_nothing_of_it_stays() {
        let temporary = tempfile::tempdir().unwrap();
        let dir = Utf8PathBuf::from_path_buf(temporary.path().join("state")).unwrap();
        let state = State::open(&dir).unwrap();
        assert_eq!(state.requests().unwrap(), []);
        let request = Request { approve: "03b369592dea".to_owned(), by: "ann".to_owned() };
        let asked = ask(&dir, &request).unwrap();
        assert_eq!(asked.answer().unwrap(), None);
        let found = state.requests().unwrap();
        assert_eq!(found.iter().map(|(_, request)| request).collect::<Vec<_>>(), [&request]);
        let answer = Answer { done: true, said: "approved".to_owned(), hint: None };
        state.answer(&found[0].0, &answer).unwrap();
        assert_eq!(asked.answer().unwrap(), Some(answer.clone()));
        drop(asked);
        // What is no request is not kept, and who went away gets no answer.
        fs::write(dir.join(FOLDER).join("x.request"), "{").unwrap();
        assert_eq!(state.requests().unwrap(), []);
        state.answer(&found[0].0, &answer).unwrap();
        assert_eq!(fs::read_dir(dir.join(FOLDER)).unwrap().count(), 0);
    }
}
