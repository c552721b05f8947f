//! The effects of another certificate. Strimzi compares only the first certificate of a chain, and restarts
//! brokers when it changes. Other changes of the chain or its key take effect at the next restart.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

use super::Difference;
use super::table::RowVerdict;
use crate::names::Json;
use crate::plan::Step;
use crate::plan::Verdict::ClientsReconnect;
use crate::spec::certificate::{Certificate, is_of_another_authority, is_the_same};

const CHAIN: &str = "/data/tls.crt";

const OTHER_AUTHORITY: &str = "brokers restart one by one with a certificate of another authority; clients that trust only \
                               the old authority can't connect until they trust the new one";

/// Returns the effect of a certificate by another authority, if the old and the new one are known.
pub(super) fn of_another_authority(step: &Step, difference: Option<&Difference>) -> Option<RowVerdict> {
    difference.filter(|it| step.object.kind == "Secret" && it.pointer == CHAIN)?;
    let (before, after) = chains(step)?;
    is_of_another_authority(&before, &after).then_some(RowVerdict::Does(ClientsReconnect, OTHER_AUTHORITY))
}

/// Whether a step writes a Secret without changing its own certificate, so that no broker restarts for it.
pub(in crate::plan) fn keeps_certificate(step: &Step) -> bool {
    step.object.kind == "Secret" && chains(step).is_some_and(|(before, after)| is_the_same(&before, &after))
}

/// Describes a change of other parts of a Secret, if the certificate that Strimzi compares stays.
pub(super) fn beside_the_certificate(step: &Step, pointer: &str) -> Option<String> {
    if !(pointer.starts_with("/data/") && keeps_certificate(step)) {
        return None;
    }
    if pointer != CHAIN {
        return Some("no broker restarts: the key is the same in another encoding".to_owned());
    }
    let (before, after) = chains(step)?;
    let ends = Certificate::parse(&before, None).ok().map(|chain| chain.not_after);
    let ends = ends.map(|at| format!(", and before the old chain ends on {}", at.strftime("%Y-%m-%d")));
    let cut_off = match is_of_another_authority(&before, &after) {
        true => "; clients that trust only the old chain's authority can't connect from then on",
        false => "",
    };
    let namespace = step.object.namespace.as_deref().unwrap_or_default();
    let cluster = step.after.as_ref().map(|manifest| manifest.owner.name.as_str()).unwrap_or_default();
    Some(format!(
        "no broker restarts, because Strimzi compares only the domain's own certificate, which stays the same: brokers use \
         the new chain from their next restart{cut_off}. If clients need it sooner{}: kubectl annotate strimzipodset -n \
         {namespace} -l strimzi.io/cluster={cluster} strimzi.io/manual-rolling-update=true",
        ends.unwrap_or_default()
    ))
}

/// Returns the chains before and after; `None` if one is missing or only known by its fingerprint.
fn chains(step: &Step) -> Option<(String, String)> {
    let chain = |body: &Json| {
        let body = body.value();
        String::from_utf8(STANDARD.decode(body.pointer(CHAIN).and_then(Value::as_str)?).ok()?).ok()
    };
    step.before.as_ref().and_then(chain).zip(step.after.as_ref().and_then(|after| chain(&after.body)))
}
