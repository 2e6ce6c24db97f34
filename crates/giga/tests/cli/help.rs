//! The help texts are read more often than any other document, so that a change to them is seen.

use crate::world::Home;

fn subcommands(help: &str) -> Vec<String> {
    let list = help.lines().skip_while(|line| *line != "Commands:").skip(1);
    let names = list.take_while(|line| !line.is_empty()).filter(|line| !line.starts_with("    "));
    names
        .filter_map(|line| line.split_whitespace().next())
        .filter(|name| *name != "help")
        .map(str::to_owned)
        .collect()
}

#[test]
fn of_every_command() {
    let home = Home::new();
    let mut open: Vec<Vec<String>> = vec![Vec::new()];
    let mut seen = 0;
    while let Some(path) = open.pop() {
        let mut args: Vec<&str> = path.iter().map(String::as_str).collect();
        args.push("--help");
        let help = home.giga(&args).ok();
        let name = if path.is_empty() { "giga".to_owned() } else { path.join("_") };
        insta::assert_snapshot!(format!("help__{name}"), help);
        seen += 1;
        open.extend(subcommands(&help).into_iter().map(|name| [path.clone(), vec![name]].concat()));
    }
    assert!(seen > 35, "only {seen} commands were found");
}

#[test]
fn version_and_completions() {
    let home = Home::new();
    assert_eq!(home.giga(&["--version"]).ok(), home.giga(&["version"]).ok());
    for shell in ["bash", "zsh", "fish"] {
        assert!(home.giga(&["completions", shell]).ok().contains("deregister"), "{shell}");
    }
    let alone = home.giga(&[]).fails(2);
    assert!(alone.contains("First steps"), "{alone}");
}
