//! What is said about the repositories of a factory before it does any work: where results will go, and what is left out.

use giga_factory::workspace::{GitPolicy, Survey, survey};

use crate::output::printable;

/// Of many, so many are shown.
const SHOWN: usize = 20;

/// Nothing where no folder is set.
pub(crate) async fn lines(policy: &GitPolicy) -> Vec<String> {
    let Some(folder) = &policy.repos else { return Vec::new() };
    let mut lines = vec![format!("  repos    {}", printable(&folder.display().to_string()))];
    match survey(policy).await {
        Ok(survey) => lines.extend(listed(&survey)),
        Err(error) => lines.push(format!("           {}", printable(&error.to_string()))),
    }
    lines
}

fn listed(survey: &Survey) -> Vec<String> {
    let Survey { found, skipped } = survey;
    if found.is_empty() && skipped.is_empty() {
        return vec!["           no repositories in it yet; new ones are found by themselves".to_owned()];
    }
    let width = found.iter().take(SHOWN).map(|repo| repo.name.chars().count()).max().unwrap_or_default();
    let mut lines: Vec<String> = found
        .iter()
        .take(SHOWN)
        .map(|repo| format!("           {:<width$}  → {}", repo.name, printable(&repo.merges_into)))
        .collect();
    lines.extend(more(found.len()));
    let said = skipped.iter().map(|skipped| {
        let remedy = skipped.remedy.map(|remedy| format!("; {remedy}")).unwrap_or_default();
        format!("           skipped {}: {}{remedy}", printable(&skipped.name), printable(&skipped.why))
    });
    lines.extend(said.take(SHOWN));
    lines.extend(more(skipped.len()));
    lines
}

fn more(count: usize) -> Option<String> {
    (count > SHOWN).then(|| format!("           and {} more; `giga doctor` lists them all", count - SHOWN))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_are_counted() {
        assert_eq!(more(SHOWN), None);
        assert_eq!(more(SHOWN + 3).unwrap().trim(), "and 3 more; `giga doctor` lists them all");
    }
}
