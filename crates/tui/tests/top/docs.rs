//! The documentation's tables of keys are the program's.

use std::path::Path;

use giga_tui::keys::{KEYS, markdown};

const BEGIN: &str = "<!-- keys: made from crates/tui/src/keys.rs -->\n";
const END: &str = "<!-- end of keys -->\n";

/// `GIGA_UPDATE_DOCS=1 cargo test -p giga-tui --test top docs` writes them anew.
#[test]
fn the_keys_stand_in_the_documentation() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/top.md");
    let page = std::fs::read_to_string(&file).unwrap();
    let (before, rest) = page.split_once(BEGIN).expect("docs/top.md has the mark where the keys begin");
    let (_, after) = rest.split_once(END).expect("docs/top.md has the mark where the keys end");
    let wanted = format!("{before}{BEGIN}\n{}{END}{after}", markdown());
    if std::env::var_os("GIGA_UPDATE_DOCS").is_some() {
        std::fs::write(&file, &wanted).unwrap();
        return;
    }
    assert!(
        page == wanted,
        "docs/top.md is out of date: GIGA_UPDATE_DOCS=1 cargo test -p giga-tui --test top docs"
    );
}

#[test]
fn no_key_means_two_things_in_one_place() {
    for (at, one) in KEYS.iter().enumerate() {
        for other in &KEYS[at + 1..] {
            let shared = one.keys.split(' ').find(|key| other.keys.split(' ').any(|k| k == *key));
            assert!(one.place != other.place || shared.is_none(), "{shared:?} in {:?}", one.place);
        }
    }
}
