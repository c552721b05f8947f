//! The effects of another certificate. Strimzi compares only the first certificate of a chain, and restarts
//! brokers when it changes. Other changes of the chain or its key take effect at the next restart.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;
use serde_json::Value;

use crate::component::Difference;
use crate::component::Verdict::{ClientsReconnect, InPlace};
use crate::component::consequence::{ObjectChange, RowVerdict};
use crate::names::Json;
use crate::spec::certificate::{Certificate, is_of_another_authority, is_the_same};

const CHAIN: &str = "/data/tls.crt";

const OTHER_AUTHORITY: &str = "brokers restart one by one with a certificate of another authority; clients that trust \
    only the old authority can't connect until they trust the new one";

/// Returns the effect of a certificate by another authority, if the old and the new one are known.
pub fn of_another_authority(change: &ObjectChange, difference: Option<&Difference>) -> Option<RowVerdict> {
    difference.filter(|it| change.object.kind == "Secret" && it.pointer == CHAIN)?;
    let (before, after) = chains(change)?;
    is_of_another_authority(&before, &after)
        .then_some(RowVerdict::Does(ClientsReconnect, OTHER_AUTHORITY.into()))
}

/// Whether a step writes a Secret without changing its own certificate, so that no broker restarts for it.
pub fn keeps_certificate(change: &ObjectChange) -> bool {
    change.object.kind == "Secret"
        && chains(change).is_some_and(|(before, after)| is_the_same(&before, &after))
}

/// When the certificate ends that a step replaces in a Secret.
pub fn replaced_ends(change: &ObjectChange) -> Option<Timestamp> {
    let (before, after) = chains(change).filter(|_| change.object.kind == "Secret")?;
    let is_replaced = !is_the_same(&before, &after);
    is_replaced.then(|| Certificate::read(&before).map(|chain| chain.not_after)).flatten()
}

/// Describes a change of other parts of a Secret, if the certificate that Strimzi compares stays.
pub fn beside_the_certificate(change: &ObjectChange, pointer: &str) -> Option<RowVerdict> {
    if !(pointer.starts_with("/data/") && keeps_certificate(change)) {
        return None;
    }
    if pointer != CHAIN {
        let words = "no broker restarts: the key is the same in another encoding";
        return Some(RowVerdict::Does(InPlace, words.into()));
    }
    let (before, after) = chains(change)?;
    let ends = Certificate::parse(&before, None).ok().map(|chain| chain.not_after);
    let ends = ends.map(|at| format!(", and before the old chain ends on {}", at.strftime("%Y-%m-%d")));
    let cut_off = match is_of_another_authority(&before, &after) {
        true => "; clients that trust only the old chain's authority can't connect from then on",
        false => "",
    };
    let namespace = change.object.namespace.as_deref().unwrap_or_default();
    let cluster = change.after.map(|manifest| manifest.owner.name.as_str()).unwrap_or_default();
    let words = format!(
        "no broker restarts, because Strimzi compares only the domain's own certificate, which stays the same: \
            brokers use the new chain from their next restart{cut_off}. If clients need it sooner{}: kubectl \
            annotate strimzipodset -n {namespace} -l strimzi.io/cluster={cluster} \
            strimzi.io/manual-rolling-update=true",
        ends.unwrap_or_default()
    );
    Some(RowVerdict::Does(InPlace, words.into()))
}

/// Returns the chains before and after; `None` if one is missing or only known by its fingerprint.
fn chains(change: &ObjectChange) -> Option<(String, String)> {
    let chain = |body: &Json| {
        let body = body.value();
        String::from_utf8(STANDARD.decode(body.pointer(CHAIN).and_then(Value::as_str)?).ok()?).ok()
    };
    change.before.and_then(chain).zip(change.after.and_then(|after| chain(&after.body)))
}
