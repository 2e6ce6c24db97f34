//! A case that nobody runs looks like a case that passes: every suite checks its own list with this.

/// `list` names the cases of each module as ` module: [case, …]`; each `pub async fn` of a module has to be there.
pub(crate) fn assert_complete(list: &str, modules: &[(&str, &str)]) {
    for (module, source) in modules {
        let (_, of_module) = list.split_once(&format!(" {module}: [")).unwrap();
        let listed: Vec<_> = of_module.split(']').next().unwrap().split(',').map(str::trim).collect();
        let cases: Vec<_> =
            source.lines().filter_map(|line| line.strip_prefix("pub async fn ")?.split('(').next()).collect();
        assert!(!cases.is_empty(), "{module} has no cases");
        for case in cases {
            assert!(listed.contains(&case), "{module}::{case} is never run");
        }
    }
}
