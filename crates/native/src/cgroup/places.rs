//! The places where sandboxes of this state folder have had control groups, one line each. A place
//! is noted before the first group is made there. So nothing needs to be written for each sandbox
//! before its groups are made, and a process that finds an unfinished sandbox derives the paths of
//! its groups from its id.

use std::collections::BTreeSet;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, Write};
use std::path::{Path, PathBuf};

use rustix::fs::FlockOperation;

use super::Home;

/// Notes that this home makes groups. Removes the notes of places that no longer exist.
pub(crate) fn note(file: &Path, home: &Home) -> io::Result<()> {
    let mut file = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(file)?;
    rustix::fs::flock(&file, FlockOperation::LockExclusive)?;
    let known = lines(&mut file)?;
    let mut places: BTreeSet<String> = known.iter().filter(|place| is_there(place)).cloned().collect();
    places.extend(home.beginnings());
    if places != known {
        file.rewind()?;
        file.set_len(0)?;
        file.write_all(
            places.iter().flat_map(|place| [place.as_str(), "\n"]).collect::<String>().as_bytes(),
        )?;
    }
    Ok(())
}

/// Lists the group directories that sandbox `id` may have.
pub(crate) fn groups_of(file: &Path, id: &str) -> io::Result<Vec<PathBuf>> {
    let mut file = match File::open(file) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        other => other?,
    };
    rustix::fs::flock(&file, FlockOperation::LockShared)?;
    Ok(lines(&mut file)?.iter().map(|place| PathBuf::from(format!("{place}{id}"))).collect())
}

fn lines(file: &mut File) -> io::Result<BTreeSet<String>> {
    let mut text = String::new();
    file.read_to_string(&mut text)?;
    Ok(text.lines().map(str::to_owned).collect())
}

fn is_there(place: &str) -> bool {
    place.rfind('/').is_some_and(|end| fs::metadata(&place[..end]).is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_noted_once_and_forgotten_when_they_are_gone() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("places");
        let [one, two] = ["one", "two"].map(|name| dir.path().join(name));
        fs::create_dir(&one).unwrap();
        fs::create_dir(&two).unwrap();
        for parent in [&one, &one, &two] {
            note(&file, &Home::fake(parent)).unwrap();
        }
        assert_eq!(groups_of(&file, "x").unwrap(), [one.join("eyot-x"), two.join("eyot-x")]);
        fs::remove_dir(&one).unwrap();
        note(&file, &Home::fake(&two)).unwrap();
        assert_eq!(groups_of(&file, "x").unwrap(), [two.join("eyot-x")]);
    }

    #[test]
    fn without_a_note_there_are_no_groups() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(groups_of(&dir.path().join("none"), "x").unwrap(), Vec::<PathBuf>::new());
    }
}
