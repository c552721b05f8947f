use crate::config::Amount;
use crate::names::tenths;
use crate::plan::cost::CostChange;
use crate::plan::{AddressChange, SizeChange, Sizes, compare::effects};

/// The free addresses that the network of a fleet should have at least.
const RECOMMENDED_ADDRESSES: u64 = 128;

/// Formats a cluster's change of size. The node count of a new cluster is among its effects already.
pub(super) fn of_cluster(change: &SizeChange) -> Option<String> {
    let nodes = if change.before.brokers > 0 { format!("{}: ", nodes(change)) } else { "takes ".to_owned() };
    Some(nodes + &taken(change)?)
}

/// Formats how the size of a fleet's clusters changes, and what its nodes have; `None` if it doesn't.
pub(super) fn of_fleet(sizes: &Sizes) -> Option<String> {
    if sizes.fleet.before == sizes.fleet.after {
        return None;
    }
    let has = sizes.room.as_ref().map_or_else(String::new, |room| format!("; {}", room.words(", ")));
    let addresses = sizes.addresses.as_ref().map(addresses).unwrap_or_default();
    let SizeChange { before, after, cost: _ } = &sizes.fleet;
    let is_one = after.brokers.max(before.brokers) + after.controllers.max(before.controllers) == 1;
    let verb = if is_one { "takes" } else { "take" };
    Some(format!("{} {verb} {}{has}{addresses}", nodes(&sizes.fleet), taken(&sizes.fleet)?))
}

/// `; they take 22 → 31 IP addresses of its network, where 128 free ones are recommended`.
fn addresses(AddressChange { before, after }: &AddressChange) -> String {
    let number =
        if before == after || *before == 0 { after.to_string() } else { format!("{before} → {after}") };
    let noun = if *after == 1 { "IP address" } else { "IP addresses" };
    format!(
        "; they take {number} {noun} of its network, where {RECOMMENDED_ADDRESSES} free ones are recommended"
    )
}

/// `3 → 6 brokers and 3 controllers`.
fn nodes(SizeChange { before, after, cost: _ }: &SizeChange) -> String {
    let kinds =
        [(before.brokers, after.brokers, "broker"), (before.controllers, after.controllers, "controller")];
    let kinds = kinds.into_iter().filter(|(before, after, _)| before + after > 0);
    let words = kinds.map(|(before, after, noun)| match before == after || before == 0 {
        true => effects::count(after, noun),
        false => format!("{before} → {}", effects::count(after, noun)),
    });
    words.collect::<Vec<_>>().join(" and ")
}

/// `9 → 13.5 CPUs, 48 → 72 GiB of memory, 600 → 900 GiB of disk`; `None` if it is nothing.
fn taken(SizeChange { before, after, cost }: &SizeChange) -> Option<String> {
    let amounts = [
        (before.cpu_millis, after.cpu_millis, 1000, "CPUs"),
        (before.memory_mib, after.memory_mib, 1024, "GiB of memory"),
        (before.disk_gib, after.disk_gib, 1, "GiB of disk"),
    ];
    let amounts = amounts.into_iter().filter(|(before, after, ..)| before + after > 0);
    let words =
        amounts.map(|(before, after, unit, noun)| match (tenths(before, unit), tenths(after, unit)) {
            (before, after) if before == after || before == "0" => format!("{after} {noun}"),
            (before, after) => format!("{before} → {after} {noun}"),
        });
    let words: Vec<String> = words.chain(cost.as_ref().and_then(a_month)).collect();
    (!words.is_empty()).then(|| words.join(", "))
}

/// `EUR 412.38 → 618.57 a month`; `None` if it is nothing.
fn a_month(CostChange { currency, before, after }: &CostChange) -> Option<String> {
    let shown = |amount: &Amount| amount.rounded(currency.decimals());
    let free = Amount::default();
    match (shown(before), shown(after)) {
        _ if *before == free && *after == free => None,
        (before, after) if before == after => Some(format!("{currency} {after} a month")),
        (_, after) if *before == free => Some(format!("{currency} {after} a month")),
        (before, after) => Some(format!("{currency} {before} → {after} a month")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::Size;

    #[test]
    fn one_broker_takes_and_several_take() {
        let of = |brokers| Size { brokers, cpu_millis: brokers * 600, ..Size::default() };
        let line = |before, after| {
            let fleet = SizeChange { before: of(before), after: of(after), cost: None };
            of_fleet(&Sizes { fleet, clusters: Default::default(), addresses: None, room: None }).unwrap()
        };
        assert_eq!(line(0, 1), "1 broker takes 0.6 CPUs");
        assert_eq!(line(1, 2), "1 → 2 brokers take 0.6 → 1.2 CPUs");
    }
}
