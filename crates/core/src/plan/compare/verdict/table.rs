//! The rows of what every cluster has, which come after those of the components.

use crate::component::Verdict::{InPlace, NoOp, RollingRestart};
use crate::component::consequence::*;

const NEVER_DELETED: [&str; 3] =
    ["holds-data", "{object} would be deleted with all data in it", "delete it by hand if you mean to"];

/// The first matching row decides. Changes without a match are made in place, without a sentence.
#[rustfmt::skip]
pub(super) const TABLE: &[Row] = &[
    refused("Namespace", ObjectFilter::Any, "", DELETED, NEVER_DELETED),
    refused("PersistentVolumeClaim", ObjectFilter::Any, "", DELETED, NEVER_DELETED),
    refused("CustomResourceDefinition", ObjectFilter::Any, "", DELETED, NEVER_DELETED),
    row("Namespace", "/metadata/annotations/**", CHANGES, NoOp, ""),
    // An operator without the stricter level would create pods that are refused. So this waits like a
    // restart, after a restart of the operator.
    row("Namespace", "/metadata/labels/pod-security.kubernetes.io~1enforce", UP, RollingRestart, "new pods must \
        satisfy pod security `{after}`"),
    row("Namespace", "/metadata/**", CHANGES, InPlace, ""),
    row("*", "/metadata/**", CHANGES, NoOp, ""),
];
