//! Changes of an organization's members, which reviewers have to see.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::names::Kind;
use crate::plan::FieldChange;

pub(in crate::plan) fn changes(kind: Kind, fields: &[FieldChange]) -> Vec<String> {
    let members = fields.iter().find(|field| kind == Kind::Organization && field.field == "members");
    let Some(FieldChange { before, after, .. }) = members else { return Vec::new() };
    let (before, after) = (roles(before), roles(after));
    let addresses = before.keys().chain(after.keys().filter(|address| !before.contains_key(*address)));
    let sentence = |address: &&str| match (before.get(address), after.get(address)) {
        (Some(role), Some(now)) if role != now => Some(format!("{address} is {now} instead of {role}")),
        (Some(role), None) => Some(format!("{address} is no longer {role}")),
        (None, Some(role)) => Some(format!("{address} becomes {role}")),
        _ => None,
    };
    addresses.filter_map(sentence).collect()
}

fn roles(members: &Value) -> BTreeMap<&str, &str> {
    let pairs = members.as_array().into_iter().flatten();
    pairs.filter_map(|member| Some((member.get("email")?.as_str()?, member.get("role")?.as_str()?))).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn each_member_who_comes_goes_or_gets_another_role_is_named() {
        let member = |email: &str, role: &str| json!({"email": email, "role": role});
        let before = json!([
            member("ann@a.example", "admin"),
            member("bob@a.example", "viewer"),
            member("eve@a.example", "editor")
        ]);
        let after = json!([
            member("ann@a.example", "admin"),
            member("bob@a.example", "admin"),
            member("joe@a.example", "viewer")
        ]);
        let change = FieldChange { field: "members".to_owned(), before, after };
        assert_eq!(
            changes(Kind::Organization, std::slice::from_ref(&change)),
            [
                "bob@a.example is admin instead of viewer",
                "eve@a.example is no longer editor",
                "joe@a.example becomes viewer"
            ]
        );
        assert_eq!(changes(Kind::Cluster, &[change]), Vec::<String>::new());
    }
}
