//! giga.toml: flat, text values only, unknown keys refused.

use std::path::PathBuf;

use giga_domain::manifest::suggest;

use super::{Key, Origin, Setting};
use crate::exit::CliError;

pub(super) const NAME: &str = "giga.toml";

pub(super) struct ConfigFile {
    pub(super) path: PathBuf,
    of_project: bool,
    values: Vec<(Key, String)>,
}

impl ConfigFile {
    pub(super) fn read(path: PathBuf, of_project: bool) -> Result<Self, CliError> {
        let wrong = |what: String| CliError::Config(format!("{}: {what}", path.display()));
        let text = std::fs::read_to_string(&path).map_err(|error| wrong(error.to_string()))?;
        let table: toml::Table = text.parse().map_err(|error: toml::de::Error| {
            let line =
                error.span().map_or(1, |span| text[..span.start.min(text.len())].matches('\n').count() + 1);
            CliError::Config(format!("{}:{line}: {}", path.display(), error.message()))
        })?;
        let mut values = Vec::new();
        for (name, value) in table {
            let Some(key) = Key::ALL.into_iter().find(|key| key.name() == name) else {
                return Err(wrong(unknown(&name)));
            };
            let toml::Value::String(value) = value else {
                return Err(wrong(format!("`{name}` must be text, such as {name} = \"…\"")));
            };
            let value =
                if key.is_path() { path.with_file_name("").join(value).display().to_string() } else { value };
            values.push((key, value));
        }
        Ok(Self { path, of_project, values })
    }

    pub(super) fn get(&self, key: Key) -> Option<Setting<String>> {
        let (_, value) = self.values.iter().find(|(name, _)| *name == key)?;
        let origin = Origin::File { path: self.path.clone(), of_project: self.of_project };
        Some(Setting { value: value.clone(), origin })
    }
}

fn unknown(name: &str) -> String {
    let names = Key::ALL.map(Key::name);
    match suggest(name, names) {
        _ if name == "token" => {
            "a token does not belong into a file that is shared; name its file with `token-file`".to_owned()
        }
        Some(near) => format!("there is no setting `{name}`; did you mean `{near}`?"),
        None => format!("there is no setting `{name}`; there are {}", names.join(", ")),
    }
}
