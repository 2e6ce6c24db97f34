//! What somebody who signs in may do: groups of an identity provider, mapped to roles and products.

use std::str::FromStr;

use crate::ProductId;
use crate::token::{Permission, Role};

/// Whoever is in the group gets the role, for these products; none at all means every product.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GroupGrant {
    pub group: String,
    pub role: Role,
    pub products: Vec<ProductId>,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{text}` is no grant: {reason}; write GROUP=ROLE or GROUP=ROLE:PRODUCT,PRODUCT such as eng=operator:web"
)]
pub struct GrantError {
    text: String,
    reason: String,
}

impl FromStr for GroupGrant {
    type Err = GrantError;

    /// From the right: names of groups may hold anything, directories write `cn=eng,ou=groups`.
    fn from_str(text: &str) -> Result<Self, GrantError> {
        let wrong = |reason: String| GrantError { text: text.chars().take(80).collect(), reason };
        let (group, rest) = text.rsplit_once('=').ok_or_else(|| wrong("it has no `=`".to_owned()))?;
        let (role, products) = match rest.split_once(':') {
            Some((role, products)) => (role, Some(products)),
            None => (rest, None),
        };
        let group = group.trim();
        if group.is_empty() || group.chars().any(char::is_control) {
            return Err(wrong("it names no group".to_owned()));
        }
        let role: Role = role.trim().parse().map_err(|error| wrong(format!("{error}")))?;
        let products = products.into_iter().flat_map(|all| all.split(','));
        let products = products.map(|one| one.trim().parse().map_err(|error| wrong(format!("{error}"))));
        let products = products.collect::<Result<Vec<ProductId>, _>>()?;
        Ok(Self { group: group.to_owned(), role, products })
    }
}

/// The highest role that one of the groups gives, for the products of all grants with exactly that role.
///
/// A token has one role, so grants of lower roles are left aside: added up they would give the higher role in products that
/// only the lower one was granted for.
pub fn permission_of(grants: &[GroupGrant], groups: &[String]) -> Option<Permission> {
    let of_theirs = || grants.iter().filter(|grant| groups.contains(&grant.group));
    let role = of_theirs().map(|grant| grant.role).max()?;
    let highest = || of_theirs().filter(|grant| grant.role == role);
    if highest().any(|grant| grant.products.is_empty()) {
        return Some(Permission::User { role, products: Vec::new() });
    }
    let mut products: Vec<ProductId> = highest().flat_map(|grant| grant.products.iter().cloned()).collect();
    products.sort_unstable();
    products.dedup();
    Some(Permission::User { role, products })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grants(texts: &[&str]) -> Vec<GroupGrant> {
        texts.iter().map(|text| text.parse().unwrap()).collect()
    }

    fn given(texts: &[&str], groups: &[&str]) -> Option<(Role, Vec<String>)> {
        let groups: Vec<String> = groups.iter().map(ToString::to_string).collect();
        match permission_of(&grants(texts), &groups)? {
            Permission::User { role, products } => {
                Some((role, products.iter().map(ToString::to_string).collect()))
            }
            other => panic!("nobody signs in as {other:?}"),
        }
    }

    #[test]
    fn grants_are_read_from_the_right() {
        let [one] = &grants(&["cn=eng,ou=groups = operator : web, api"])[..] else { panic!("one") };
        assert_eq!((one.group.as_str(), one.role), ("cn=eng,ou=groups", Role::Operator));
        assert_eq!(one.products.iter().map(ToString::to_string).collect::<Vec<_>>(), ["web", "api"]);
        assert!(grants(&["eng=viewer"])[0].products.is_empty());
        for wrong in
            ["", "eng", "=viewer", "eng=boss", "eng=viewer:", "eng=viewer:web,,api", "eng=viewer:A B"]
        {
            let error = wrong.parse::<GroupGrant>().unwrap_err().to_string();
            assert!(error.contains("eng=operator:web"), "{wrong}: {error}");
        }
    }

    #[test]
    fn nobody_gets_more_than_a_grant_gives() {
        let all = ["eng=operator:web", "ops=operator:api", "lead=admin:web", "staff=viewer", "root=admin"];
        assert_eq!(given(&all, &[]), None);
        assert_eq!(given(&all, &["sales"]), None);
        assert_eq!(given(&all, &["eng"]), Some((Role::Operator, vec!["web".to_owned()])));
        let both = Some((Role::Operator, vec!["api".to_owned(), "web".to_owned()]));
        assert_eq!(given(&all, &["eng", "ops"]), both, "the same role in two products");
        let lead = Some((Role::Admin, vec!["web".to_owned()]));
        assert_eq!(given(&all, &["lead", "ops", "staff"]), lead, "no admin of api, nor of everything");
        assert_eq!(given(&all, &["staff", "eng"]), Some((Role::Operator, vec!["web".to_owned()])));
        assert_eq!(given(&all, &["lead", "root"]), Some((Role::Admin, Vec::new())));
    }
}
