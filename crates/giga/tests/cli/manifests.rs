//! Bad manifests: everything that is wrong, with its line, and nothing submitted.

use crate::world::{Home, giga, run_with_input};

#[test]
fn every_problem_with_its_line() {
    let home = Home::new();
    let _server = home.start();
    home.write(
        "bad.md",
        "---\nname: fix\npriorty: high\nretry: {max: many}\nreview: {quorum: -1}\n---\nbody\n",
    );
    for command in ["submit", "plan"] {
        let refused = home.giga(&["job", command, "bad.md"]).fails(1);
        insta::assert_snapshot!("manifest__refused", refused);
    }
    let refused = run_with_input(giga(home.path()).args(["job", "submit", "-"]), b"no front matter").fails(1);
    insta::assert_snapshot!("manifest__no_front_matter", refused);
    assert!(home.giga(&["job", "list"]).ok().is_empty());
}

#[test]
fn a_file_that_cannot_be_read_says_why() {
    let home = Home::new();
    let _server = home.start();
    home.write("latin1.md", b"---\nname: caf\xe9\n---\n");
    home.write("folder/x", "");
    home.write("huge.md", vec![b'x'; 1024 * 1024 + 1]);
    let why = |file: &str| home.giga(&["job", "submit", file]).fails(1);
    assert!(why("gone.md").contains("cannot read the manifest gone.md: no such file"));
    assert!(why("folder").contains("it is a folder"));
    assert!(why("latin1.md").contains("it is not UTF-8 text"));
    assert!(why("huge.md").contains("it is larger than 1 MiB"));
    assert!(why("gone.md").contains("hint: write one to start from with `giga job init FILE`"));
}
