//! The Secrets that the operator creates for Kafka users of ours.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;
use zeroize::{Zeroize as _, Zeroizing};

use super::{KubeError, KubernetesTarget};
use crate::names::ObjectKey;

/// The values of a Secret, by key.
pub type SecretValues = BTreeMap<String, Zeroizing<Vec<u8>>>;

impl KubernetesTarget {
    /// Reads the values of a Secret. None when it doesn't exist.
    pub(in crate::target) async fn secret_values(
        &self,
        namespace: &str,
        name: &str,
    ) -> Result<Option<SecretValues>, KubeError> {
        let key = ObjectKey {
            api_version: "v1".to_owned(),
            kind: "Secret".to_owned(),
            namespace: Some(namespace.to_owned()),
            name: name.to_owned(),
        };
        let found = self.api().await?.get(&key).await?;
        Ok(found.map(|mut secret| values(secret["data"].take())))
    }
}

/// Values that aren't base64 are left out.
fn values(data: Value) -> SecretValues {
    let Value::Object(data) = data else { return SecretValues::new() };
    let value = |(key, value): (String, Value)| {
        let Value::String(mut text) = value else { return None };
        let bytes = STANDARD.decode(&text).map(Zeroizing::new);
        text.zeroize();
        Some((key, bytes.ok()?))
    };
    data.into_iter().filter_map(value).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_no_base64_is_left_out() {
        let found = values(json!({"password": "c2VjcmV0", "broken": "%", "number": 1}));
        let expected = [("password".to_owned(), Zeroizing::new(b"secret".to_vec()))];
        assert_eq!(found, SecretValues::from(expected));
        assert_eq!(values(Value::Null), SecretValues::new());
    }
}
