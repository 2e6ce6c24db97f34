//! The repositories under the owner's folder: found by looking, each with its name and where its results will go.
//!
//! Never looks inside a repository or a hidden folder, never follows a link further than to a repository, and never
//! takes a name for a path. What is left out is said with its reason.

use std::collections::{HashMap, VecDeque};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use futures::future::join_all;
use giga_domain::limits;
use giga_domain::repo::is_repo_name;
use parking_lot::Mutex;

use super::error::{WorkspaceError, tidy};
use super::git::Git;
use super::policy::{GitPolicy, GitUrl, RepoSource};
use super::target::Folder;

/// `team/area/group/app` and no deeper.
const LEVELS: usize = 4;
/// How many folders are looked into. A heartbeat does it every time.
const MOST_FOLDERS: usize = 5_000;
/// As many as a factory may report, with room for what it cloned itself.
const MOST_REPOS: usize = limits::FACTORY_REPOS / 2;
/// What tools fill with folders that are nobody's repositories.
const FILLED: [&str; 2] = ["node_modules", "target"];
const AT_ONCE: usize = 8;

/// What was found under the owner's folder, by name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Survey {
    pub found: Vec<FoundRepo>,
    pub skipped: Vec<Skipped>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundRepo {
    pub name: String,
    /// Where results will go, in words: `origin/main (https://…)`.
    pub merges_into: String,
    pub(crate) source: RepoSource,
}

/// A repository that cannot be offered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Skipped {
    /// Its name, or its path where that makes none.
    pub name: String,
    pub why: String,
    pub remedy: Option<&'static str>,
}

impl Skipped {
    fn because_of(name: &str, error: &WorkspaceError) -> Self {
        let why = match error {
            WorkspaceError::Refused { given, rule, .. } => format!("its origin `{given}` is refused: {rule}"),
            WorkspaceError::Git { detail, .. } => detail.clone(),
            other => other.to_string(),
        };
        Self { name: name.to_owned(), why: tidy(&why).replace('\n', " "), remedy: None }
    }
}

/// What is under the policy's folder, for whoever wants to say it before any work starts.
pub async fn survey(policy: &GitPolicy) -> Result<Survey, WorkspaceError> {
    let git = Git::probe(policy)?;
    Ok(Folders { git: &git, policy, seen: &Seen::default() }.survey().await)
}

/// A folder that looks like a repository.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) name: String,
    path: PathBuf,
}

impl Place {
    fn is_bare(&self) -> bool {
        !self.path.join(".git").exists()
    }

    fn git_dir(&self) -> PathBuf {
        if self.is_bare() { self.path.clone() } else { self.path.join(".git") }
    }
}

pub(crate) struct Folders<'a> {
    pub(crate) git: &'a Git,
    pub(crate) policy: &'a GitPolicy,
    pub(crate) seen: &'a Seen,
}

impl Folders<'_> {
    pub(crate) async fn survey(&self) -> Survey {
        let (places, skipped) = self.walk().await;
        let mut survey = Survey { found: Vec::with_capacity(places.len()), skipped };
        for some in places.chunks(AT_ONCE) {
            let looked = join_all(some.iter().map(|place| self.look(place))).await;
            for (place, looked) in some.iter().zip(looked) {
                match looked {
                    Ok(found) => survey.found.push(found),
                    Err(error) => survey.skipped.push(Skipped::because_of(&place.name, &error)),
                }
            }
        }
        survey.found.sort_by(|a, b| a.name.cmp(&b.name));
        survey.skipped.sort_by(|a, b| a.name.cmp(&b.name));
        survey
    }

    /// Names first: whoever wants one repository need not ask git about all of them.
    pub(crate) async fn walk(&self) -> (Vec<Place>, Vec<Skipped>) {
        let Some(repos) = self.policy.repos.clone() else { return Default::default() };
        // A panic in there would be a bug of the walk alone.
        tokio::task::spawn_blocking(move || walk(&repos)).await.unwrap_or_default()
    }

    pub(crate) async fn look(&self, place: &Place) -> Result<FoundRepo, WorkspaceError> {
        let path = place.path.canonicalize().map_err(WorkspaceError::io(&place.path))?;
        let git_dir = place.git_dir();
        let (url, checkout, merges_into) = if let Some(known) = self.seen.known(&path, &git_dir) {
            known
        } else {
            // Before git is asked: what is written meanwhile is found the next time.
            let written = stamps(&git_dir);
            let looked = self.ask(place, &path).await?;
            self.seen.remember(path, written, &looked);
            looked
        };
        let mut source = RepoSource::new(&place.name, url);
        source.checkout = checkout;
        Ok(FoundRepo { name: place.name.clone(), merges_into, source })
    }

    async fn ask(&self, place: &Place, path: &Path) -> Result<Looked, WorkspaceError> {
        let git_dir = place.git_dir();
        let call = |action: &str| self.git.at(&git_dir, format!("{action} {}", place.name));
        let origin = call("reading the origin of").args(["config", "--get", "remote.origin.url"]);
        let origin = origin.run_any().await?;
        match origin.status.code() {
            Some(0) => {
                let url = origin_url(path, &origin.text())?;
                let head = call("reading the branch of").args(["symbolic-ref", "--quiet", "--short"]);
                let head = head.arg("refs/remotes/origin/HEAD").run_any().await?;
                let branch = match head.status.code() {
                    Some(0) => head.text(),
                    Some(1) => "the default branch of origin".to_owned(),
                    _ => return Err(head.error()),
                };
                let checkout = (!place.is_bare()).then(|| path.to_owned());
                let merges_into = match url.folder().filter(|folder| folder.is_dir()) {
                    Some(folder) => Folder::look(self.git, &folder).await?.destination(self.policy),
                    None => format!("{branch} ({url})"),
                };
                Ok((url, checkout, merges_into))
            }
            Some(1) => {
                let folder = Folder::look(self.git, path).await?;
                Ok((GitUrl::of_folder(path)?, None, folder.destination(self.policy)))
            }
            _ => Err(origin.error()),
        }
    }
}

fn walk(root: &Path) -> (Vec<Place>, Vec<Skipped>) {
    let mut walk = Walk { root, ahead: VecDeque::new(), places: Vec::new(), skipped: Vec::new() };
    walk.run();
    (walk.places, walk.skipped)
}

struct Walk<'a> {
    root: &'a Path,
    /// Breadth first, so that what is left out when there is too much is what lies deepest.
    ahead: VecDeque<Ahead>,
    places: Vec<Place>,
    skipped: Vec<Skipped>,
}

struct Ahead {
    path: PathBuf,
    name: String,
    level: usize,
}

impl Walk<'_> {
    fn run(&mut self) {
        self.ahead.push_back(Ahead { path: self.root.to_owned(), name: String::new(), level: 1 });
        let mut looked_into = 0;
        while let Some(folder) = self.ahead.pop_front() {
            if looked_into == MOST_FOLDERS || self.places.len() >= MOST_REPOS {
                let found = self.places.len();
                let why =
                    format!("too much is in it: {found} repositories after {looked_into} folders, and more");
                self.skip(self.root.to_string_lossy(), why, "name a folder with less in it");
                break;
            }
            looked_into += 1;
            self.look_into(&folder);
        }
        if self.places.is_empty() && is_repository(self.root) {
            self.skip(
                self.root.to_string_lossy(),
                "it is a repository itself",
                "name the folder that it is in",
            );
        }
    }

    fn look_into(&mut self, folder: &Ahead) {
        let entries = match entries(&folder.path) {
            Ok(entries) => entries,
            Err(error) => {
                let why = format!("it cannot be read: {error}");
                return self.skip(folder.path.to_string_lossy(), why, "change its permissions");
            }
        };
        for (file_name, path, is_link) in entries {
            let name = if folder.level == 1 { file_name } else { format!("{}/{file_name}", folder.name) };
            if is_repository(&path) {
                self.add(name.strip_suffix(".git").unwrap_or(&name), path);
            } else if folder.level < LEVELS && !is_link {
                self.ahead.push_back(Ahead { path, name, level: folder.level + 1 });
            }
        }
    }

    fn add(&mut self, name: &str, path: PathBuf) {
        if !is_repo_name(name) {
            let why = "a name has letters, digits, `.`, `_`, `-` and blanks inside, and starts with a letter or digit";
            return self.skip(name.to_owned(), why, "rename the folder");
        }
        match self.places.iter().find(|place| place.name == name) {
            Some(other) => {
                let why = format!("{} has the same name", other.path.display());
                self.skip(path.to_string_lossy(), why, "rename one of them");
            }
            None => self.places.push(Place { name: name.to_owned(), path }),
        }
    }

    fn skip(&mut self, name: impl Into<String>, why: impl Into<String>, remedy: &'static str) {
        self.skipped.push(Skipped { name: name.into(), why: why.into(), remedy: Some(remedy) });
    }
}

type Entry = (String, PathBuf, bool);

/// Folders, and links to such, in the order of their names.
fn entries(folder: &Path) -> std::io::Result<Vec<Entry>> {
    let mut all = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        if name.starts_with('.') || FILLED.contains(&name.as_str()) || !entry.path().is_dir() {
            continue;
        }
        let is_link = entry.file_type().is_ok_and(|kind| kind.is_symlink());
        all.push((name, entry.path(), is_link));
    }
    all.sort();
    Ok(all)
}

fn is_repository(path: &Path) -> bool {
    let is_bare =
        || path.join("HEAD").is_file() && path.join("objects").is_dir() && path.join("refs").is_dir();
    path.join(".git").exists() || is_bare()
}

/// The origin of a checkout may be a path, also one beside it.
fn origin_url(folder: &Path, origin: &str) -> Result<GitUrl, WorkspaceError> {
    match GitUrl::parse(origin) {
        Ok(url) => Ok(url),
        Err(error) if origin.contains("::") => Err(error),
        Err(error) => match folder.join(origin).canonicalize() {
            Ok(path) => GitUrl::of_folder(&path),
            // Away for now, as a disk or a share may be: it is still where it was.
            Err(_) if origin.starts_with('/') => GitUrl::of_folder(Path::new(origin)),
            Err(_) => Err(error),
        },
    }
}

/// The origin, the checkout where it is one of that origin, and where results go.
type Looked = (GitUrl, Option<PathBuf>, String);

/// Repositories as they were last looked at: a heartbeat looks at every folder, and git is asked again only about one
/// in which something was written that matters here.
#[derive(Debug, Default)]
pub(crate) struct Seen(Mutex<HashMap<PathBuf, (Stamps, Looked)>>);

/// When files were written and how long they are; nothing for those that are not there.
type Stamps = Vec<Option<(SystemTime, u64)>>;

/// `None` for what cannot be remembered, such as a work tree whose repository is elsewhere.
fn stamps(git_dir: &Path) -> Option<Stamps> {
    let stamp = |file: &Path| {
        let found = std::fs::metadata(file).ok()?;
        Some((found.modified().ok()?, found.len()))
    };
    stamp(&git_dir.join("config"))?;
    let files =
        ["config", "HEAD", "packed-refs", "refs/heads", "refs/remotes/origin", "reftable", "worktrees"];
    let mut stamps: Stamps = files.iter().map(|file| stamp(&git_dir.join(file))).collect();
    let linked = std::fs::read_dir(git_dir.join("worktrees")).into_iter().flatten().flatten();
    let mut linked: Vec<PathBuf> = linked.map(|entry| entry.path()).collect();
    linked.sort();
    stamps.extend(linked.iter().map(|worktree| stamp(&worktree.join("HEAD"))));
    Some(stamps)
}

/// An origin may be a folder of this machine, too, and then it counts what is written there.
fn with_origin(mut own: Stamps, url: &GitUrl) -> Stamps {
    let origin =
        url.folder().map(|folder| if folder.join(".git").is_dir() { folder.join(".git") } else { folder });
    own.extend(origin.and_then(|git_dir| stamps(&git_dir)).unwrap_or_default());
    own
}

impl Seen {
    fn known(&self, folder: &Path, git_dir: &Path) -> Option<Looked> {
        let (written, looked) = self.0.lock().get(folder)?.clone();
        (with_origin(stamps(git_dir)?, &looked.0) == written).then_some(looked)
    }

    fn remember(&self, folder: PathBuf, written: Option<Stamps>, looked: &Looked) {
        let mut all = self.0.lock();
        match written {
            Some(written) => all.insert(folder, (with_origin(written, &looked.0), looked.clone())),
            None => all.remove(&folder),
        };
    }
}
