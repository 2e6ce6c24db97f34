//! The secrets that a manifest names: which, and where the job finds each.

use super::error::{Problems, quoted};
use super::reader::{Field, Section};
use super::tree::Value;
use crate::secret::{
    FILE_RULE, SecretName, SecretPlace, SecretUse, VARIABLE_RULE, is_home_file, is_reserved, is_variable,
};
use crate::{EngineChoice, limits};

/// It runs on its vendor's machines, where nothing of this factory reaches it.
const ELSEWHERE: &str = "devin";

pub(super) fn read(field: &Field<'_>, engine: &EngineChoice, p: &mut Problems) -> Vec<SecretUse> {
    if engine.has(ELSEWHERE) {
        field.refuse(
            "cannot be given to `engine: devin`, which runs on its vendor's machines; set them up there, or choose \
             another engine",
            p,
        );
    }
    let mut uses: Vec<SecretUse> = Vec::new();
    for item in field.items("secrets, such as [NPM_TOKEN]", limits::JOB_SECRETS, p) {
        let Some(one) = entry(&item, p) else { continue };
        if let Some(other) = uses.iter().find(|other| clash(&other.place, &one.place)) {
            item.refuse(
                format!("goes where {} goes; give each a place of its own", quoted(other.name.as_str())),
                p,
            );
            continue;
        }
        uses.push(one);
    }
    uses
}

fn entry(item: &Field<'_>, p: &mut Problems) -> Option<SecretUse> {
    if matches!(item.node.value, Value::Text(_)) {
        let name = name(item, p)?;
        let place = SecretPlace::Env(variable(item, name.as_str(), p)?);
        return Some(SecretUse { name, place });
    }
    let section = Section::open(&item.path, item.node, &["name", "env", "file"], p)?;
    let name = section.require("name", "name: NPM_TOKEN", p).and_then(|f| name(&f, p))?;
    let place = match (section.get("env"), section.get("file")) {
        (Some(_), Some(_)) => {
            item.refuse("has both env and file; name it twice to have it in both places", p);
            return None;
        }
        (Some(env), None) => {
            let text = env.text(VARIABLE_RULE, p)?;
            SecretPlace::Env(variable(&env, text, p)?)
        }
        (None, Some(file)) => {
            let path = file.text(FILE_RULE, p)?;
            if !is_home_file(path) {
                file.expected(FILE_RULE, p);
                return None;
            }
            SecretPlace::File(path.to_owned())
        }
        (None, None) => SecretPlace::Env(variable(item, name.as_str(), p)?),
    };
    Some(SecretUse { name, place })
}

fn name(field: &Field<'_>, p: &mut Problems) -> Option<SecretName> {
    let text = field.text("the name of a secret", p)?;
    let name = text.parse().ok();
    if name.is_none() {
        field.expected(&format!("the name of a secret, {}", SecretName::RULE), p);
    }
    name
}

fn variable(field: &Field<'_>, text: &str, p: &mut Problems) -> Option<String> {
    if !is_variable(text) {
        field.expected(VARIABLE_RULE, p);
        return None;
    }
    if is_reserved(text) {
        field.refuse(
            format!(
                "would be the variable {}, which the factory sets itself; choose another with env",
                quoted(text)
            ),
            p,
        );
        return None;
    }
    Some(text.to_owned())
}

/// The same variable or file, or a file where another needs a folder.
fn clash(one: &SecretPlace, other: &SecretPlace) -> bool {
    match (one, other) {
        (SecretPlace::Env(one), SecretPlace::Env(other)) => one == other,
        (SecretPlace::File(one), SecretPlace::File(other)) => {
            let below = |path: &str, folder: &str| {
                path.strip_prefix(folder).is_some_and(|rest| rest.starts_with('/'))
            };
            one == other || below(one, other) || below(other, one)
        }
        _ => false,
    }
}
