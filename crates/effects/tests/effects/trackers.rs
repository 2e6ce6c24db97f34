//! What belongs to every tracker besides its code.

use std::path::Path;

use giga_effects::TRACKERS;

#[test]
fn a_tracker_is_tested_and_described() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let guide = std::fs::read_to_string(root.join("../../docs/operations.md")).unwrap();
    for kind in TRACKERS {
        let name = kind.name;
        assert!(
            root.join(format!("tests/effects/{name}.rs")).is_file(),
            "{name} has no tests/effects/{name}.rs"
        );
        let variable = kind.settings.token_variable;
        assert!(guide.contains(variable), "docs/operations.md does not say what {variable} is for");
    }
}
