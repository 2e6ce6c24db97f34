//! The text beside a file that was refused: every problem with its line, in the words of the coordinator.

use std::fmt::Write as _;

use giga_api::wire::Problem;
use giga_domain::JobId;

/// A refusal that the same file would meet again, as against one that waits for a token or a healthy coordinator.
pub(super) fn is_about_the_file(problem: &Problem) -> bool {
    (400..500).contains(&problem.status) && !matches!(problem.status, 401 | 408 | 429)
}

pub(super) fn text(name: &str, problem: &Problem) -> String {
    let mut text = format!("{name} was refused: {} ({}).\n\n", problem.title, problem.code);
    if problem.errors.is_empty() {
        push(&mut text, format_args!("{}", problem.detail));
    }
    for error in &problem.errors {
        match error.line {
            Some(line) => push(&mut text, format_args!("line {line}: {}: {}", error.field, error.message)),
            None => push(&mut text, format_args!("{}: {}", error.field, error.message)),
        }
    }
    text.push_str("\nMend it and put it into inbox/ again.\n");
    text
}

pub(super) fn again(name: &str, job: JobId, first: &str) -> String {
    format!(
        "{name} was not submitted: it is the same as {first}, which is job {job}.\n\n\
         To run it once more, change the file or its name, or `giga job requeue {job}` where the job failed.\n"
    )
}

fn push(text: &mut String, line: std::fmt::Arguments<'_>) {
    writeln!(text, "{line}").expect("writing to a string cannot fail");
}

#[cfg(test)]
mod tests {
    use super::*;
    use giga_api::wire::{FieldError, ProblemCode};

    #[test]
    fn every_problem_is_told_with_its_line() {
        let error =
            |line, field: &str| FieldError { field: field.to_owned(), line, message: "is wrong".to_owned() };
        let problem = Problem {
            title: "Invalid manifest".to_owned(),
            status: 400,
            code: ProblemCode::InvalidManifest,
            errors: vec![error(Some(3), "priorty"), error(None, "deps")],
            ..Problem::default()
        };
        let text = text("fix.md", &problem);
        assert!(text.contains("line 3: priorty: is wrong\ndeps: is wrong\n"), "{text}");
        assert!(is_about_the_file(&problem));
        assert!(!is_about_the_file(&Problem { status: 401, ..problem.clone() }));
        assert!(!is_about_the_file(&Problem { status: 503, ..problem }));
    }
}
