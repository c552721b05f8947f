//! Container images that nodes of fleets pull beside those of the operator.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::TieredStorageConfig;
use super::operators::{is_image_prefix, is_sha256};
use super::release::is_allowed;
use crate::problem::quote_untrusted;

/// Which container images the nodes of fleets pull for what Streamfleet itself renders, and from where. `plan` names
/// the images of what it applies, the operator's own included; those of Kafka are the operator's choice.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ImagesConfig {
    /// Allowed prefixes of the images that these settings name, each ending in a slash. Without any, every image is
    /// allowed.
    #[schemars(inner(regex(pattern = r"^\S+/$")), extend("examples" = [["registry.example.com/mirror/"]]))]
    pub allowed_prefixes: Vec<String>,
    /// The image of Apicurio Registry 3.3, by digest. Without it, no cluster can have a `schema_registry`.
    #[schemars(regex(pattern = r"^[a-z0-9][-a-z0-9.:/_]*@sha256:[0-9a-f]{64}$"), example = &"quay.io/apicurio/apicurio-registry@sha256:0000000000000000000000000000000000000000000000000000000000000000")]
    pub schema_registry: Option<String>,
    /// The image of StreamsHub Console 0.13 or newer, by digest. Without it, no cluster can have a `console`.
    #[schemars(regex(pattern = r"^[a-z0-9][-a-z0-9.:/_]*@sha256:[0-9a-f]{64}$"), example = &"quay.io/streamshub/console-api@sha256:0000000000000000000000000000000000000000000000000000000000000000")]
    pub console: Option<String>,
    /// The image of Prometheus 3.4 or newer, by digest. Without it, no fleet can have `prometheus: own`.
    #[schemars(regex(pattern = r"^[a-z0-9][-a-z0-9.:/_]*@sha256:[0-9a-f]{64}$"), example = &"quay.io/prometheus/prometheus@sha256:0000000000000000000000000000000000000000000000000000000000000000")]
    pub prometheus: Option<String>,
}

impl ImagesConfig {
    /// Returns an error for the first key with an invalid value.
    pub(super) fn out_of_bounds(&self, tiered_storage: &TieredStorageConfig) -> Option<String> {
        if !self.allowed_prefixes.iter().all(|it| is_image_prefix(it)) {
            return Some(
                "`images.allowed_prefixes` must list prefixes of image names, each up to a slash: \
                 `registry.example.com/mirror/`"
                    .to_owned(),
            );
        }
        let own = [
            ("images.schema_registry", &self.schema_registry),
            ("images.console", &self.console),
            ("images.prometheus", &self.prometheus),
        ];
        let floating = own.iter().find(|(_, image)| image.as_deref().is_some_and(|image| !is_pinned(image)));
        if let Some((key, image)) = floating {
            let image = quote_untrusted(image.as_deref().unwrap_or_default());
            return Some(format!(
                "`{key}` is `{image}`, and must name the image by its digest: `REGISTRY/NAME@sha256:` and 64 hexadecimal \
                 digits in lower case, as the registry's page of the image shows it"
            ));
        }
        let named = own.into_iter().chain([("tiered_storage.plugin_image", &tiered_storage.plugin_image)]);
        let is_allowed =
            |image: &str| self.allowed_prefixes.is_empty() || is_allowed(image, &self.allowed_prefixes);
        let mut named = named.filter_map(|(key, image)| Some((key, image.as_deref()?)));
        named.find(|(_, image)| !is_allowed(image)).map(|(key, image)| {
            format!(
                "`{key}` is `{image}`, which begins with none of `images.allowed_prefixes`: {}",
                self.allowed_prefixes.join(", ")
            )
        })
    }
}

/// Whether an image is named by its digest.
fn is_pinned(image: &str) -> bool {
    let Some((name, digest)) = image.split_once("@sha256:") else { return false };
    let is_plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"-.:/_".contains(&byte);
    let starts = name.as_bytes().first().is_some_and(u8::is_ascii_alphanumeric);
    starts && name.bytes().all(is_plain) && is_sha256(digest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_image_is_pinned_and_from_an_allowed_registry() {
        let image = format!("quay.io/apicurio/apicurio-registry@sha256:{}", "0a".repeat(32));
        let config = |prefixes: &[&str], image: &str| ImagesConfig {
            allowed_prefixes: prefixes.iter().map(|&it| it.to_owned()).collect(),
            schema_registry: Some(image.to_owned()),
            console: None,
            prometheus: None,
        };
        let fault = |prefixes: &[&str], image: &str, plugin: Option<&str>| {
            let plugin_image = plugin.map(str::to_owned);
            let tiered_storage = TieredStorageConfig { plugin_image, ..TieredStorageConfig::default() };
            config(prefixes, image).out_of_bounds(&tiered_storage)
        };
        assert_eq!(fault(&[], &image, Some("other.example.com/plugin:1")), None);
        assert_eq!(fault(&["quay.io/"], &image, None), None);
        assert_eq!(
            fault(&["quay.io"], &image, None).unwrap(),
            "`images.allowed_prefixes` must list prefixes of image names, each up to a slash: \
             `registry.example.com/mirror/`"
        );
        for floating in
            ["quay.io/apicurio/apicurio-registry:3.3.3", "a@sha256:0A", "-a@sha256:", "$(x)@sha256:0"]
        {
            assert_eq!(
                fault(&[], floating, None).unwrap(),
                format!(
                    "`images.schema_registry` is `{floating}`, and must name the image by its digest: \
                     `REGISTRY/NAME@sha256:` and 64 hexadecimal digits in lower case, as the registry's page of the image \
                     shows it"
                )
            );
        }
        assert_eq!(
            fault(&["a.example.com/", "b.example.com/x/"], &image, None).unwrap(),
            format!(
                "`images.schema_registry` is `{image}`, which begins with none of `images.allowed_prefixes`: \
                 a.example.com/, b.example.com/x/"
            )
        );
        assert_eq!(
            fault(&["quay.io/"], &image, Some("other.example.com/plugin:1")).unwrap(),
            "`tiered_storage.plugin_image` is `other.example.com/plugin:1`, which begins with none of \
             `images.allowed_prefixes`: quay.io/"
        );
    }
}
