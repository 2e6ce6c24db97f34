//! What an agent may do without a person: by the kind of tool that it asks leave for.
//!
//! The sandbox is what holds an agent; this is what a product or a job wants to be asked about. What is not known is not
//! allowed.

use std::path::Path;

use agent_client_protocol::v1::schema::{
    PermissionOption, PermissionOptionKind, RequestPermissionOutcome, RequestPermissionRequest,
    SelectedPermissionOutcome, ToolKind,
};
use giga_domain::Permissions;

pub(super) fn allows(permissions: Permissions, request: &RequestPermissionRequest, tree: &Path) -> bool {
    let fields = &request.tool_call.fields;
    let needs = match fields.kind.unwrap_or_default() {
        ToolKind::Read | ToolKind::Search | ToolKind::Think => Permissions::Ask,
        ToolKind::Edit | ToolKind::Delete | ToolKind::Move => Permissions::Edit,
        ToolKind::Execute => Permissions::Commands,
        _ => Permissions::All,
    };
    let places = fields.locations.as_deref().unwrap_or_default();
    // What it names beside the work tree, the sandbox may allow and this does not.
    let is_inside = places.iter().all(|place| is_below(&place.path, tree));
    permissions >= needs && (is_inside || permissions == Permissions::All)
}

fn is_below(path: &Path, tree: &Path) -> bool {
    let climbs = path.components().any(|part| matches!(part, std::path::Component::ParentDir));
    !climbs && (path.is_relative() || path.starts_with(tree))
}

/// Once, rather than for all times.
pub(super) fn yes(options: &[PermissionOption]) -> RequestPermissionOutcome {
    choose(options, &[PermissionOptionKind::AllowOnce, PermissionOptionKind::AllowAlways])
}

pub(super) fn no(options: &[PermissionOption]) -> RequestPermissionOutcome {
    choose(options, &[PermissionOptionKind::RejectOnce, PermissionOptionKind::RejectAlways])
}

fn choose(options: &[PermissionOption], kinds: &[PermissionOptionKind]) -> RequestPermissionOutcome {
    let find = |kind: &PermissionOptionKind| options.iter().find(|option| option.kind == *kind);
    match kinds.iter().find_map(find) {
        Some(option) => {
            RequestPermissionOutcome::Selected(SelectedPermissionOutcome::new(option.option_id.clone()))
        }
        None => RequestPermissionOutcome::Cancelled,
    }
}

/// The option that a person named; anything else is a no.
pub(super) fn named(options: &[PermissionOption], answer: &str) -> RequestPermissionOutcome {
    let answer = answer.trim();
    let found = options.iter().find(|option| option.name.eq_ignore_ascii_case(answer));
    match found {
        Some(option) => {
            RequestPermissionOutcome::Selected(SelectedPermissionOutcome::new(option.option_id.clone()))
        }
        None => no(options),
    }
}

#[cfg(test)]
mod tests {
    use agent_client_protocol::v1::schema::{ToolCallLocation, ToolCallUpdate, ToolCallUpdateFields};

    use super::*;

    fn asks(kind: Option<ToolKind>, places: &[&str]) -> RequestPermissionRequest {
        let mut fields = ToolCallUpdateFields::new();
        fields.kind = kind;
        fields.locations = Some(places.iter().map(|path| ToolCallLocation::new(*path)).collect());
        RequestPermissionRequest::new("s", ToolCallUpdate::new("t", fields), Vec::new())
    }

    #[test]
    fn each_step_allows_more() {
        use Permissions::{All, Ask, Commands, Edit};
        for (kind, least) in [
            (Some(ToolKind::Read), Ask),
            (Some(ToolKind::Edit), Edit),
            (Some(ToolKind::Delete), Edit),
            (Some(ToolKind::Execute), Commands),
            (Some(ToolKind::Fetch), All),
            (Some(ToolKind::SwitchMode), All),
            (Some(ToolKind::Other), All),
            (None, All),
        ] {
            for given in [Ask, Edit, Commands, All] {
                let allowed = allows(given, &asks(kind, &["/w/tree/a"]), Path::new("/w/tree"));
                assert_eq!(allowed, given >= least, "{kind:?} with {given}");
            }
        }
    }

    #[test]
    fn beside_the_work_tree_nothing_is_allowed_unasked() {
        for (path, inside) in [
            ("/w/tree/a", true),
            ("a/b", true),
            ("/w/tree/../secret", false),
            ("../a", false),
            ("/etc/passwd", false),
            ("/w/tree2/a", false),
        ] {
            let request = asks(Some(ToolKind::Edit), &["/w/tree/x", path]);
            assert_eq!(allows(Permissions::Edit, &request, Path::new("/w/tree")), inside, "{path}");
            assert!(allows(Permissions::All, &request, Path::new("/w/tree")), "{path}");
        }
    }

    #[test]
    fn once_is_enough() {
        let option = |id: &str, kind| PermissionOption::new(id.to_owned(), format!("do {id}"), kind);
        let options = [
            option("always", PermissionOptionKind::AllowAlways),
            option("once", PermissionOptionKind::AllowOnce),
            option("never", PermissionOptionKind::RejectOnce),
        ];
        let chosen = |outcome| match outcome {
            RequestPermissionOutcome::Selected(selected) => selected.option_id.to_string(),
            _ => "cancelled".to_owned(),
        };
        assert_eq!(chosen(yes(&options)), "once");
        assert_eq!(chosen(yes(&options[..1])), "always");
        assert_eq!(chosen(no(&options)), "never");
        assert_eq!(chosen(no(&options[..2])), "cancelled");
        assert_eq!(chosen(named(&options, " Do Always ")), "always");
        assert_eq!(chosen(named(&options, "whatever")), "never");
    }
}
