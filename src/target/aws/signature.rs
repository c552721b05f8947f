//! The signature of a request (AWS Signature Version 4).

use std::time::SystemTime;

use aws_credential_types::Credentials;
use aws_sigv4::http_request::{
    PayloadChecksumKind, PercentEncodingMode, SignableBody, SignableRequest, SigningSettings,
    UriPathNormalizationMode, sign as signature,
};
use aws_sigv4::sign::v4::SigningParams;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::{HeaderValue, Request};
use jiff::Timestamp;
use secrecy::ExposeSecret as _;
use sha2::{Digest as _, Sha256};

use crate::spec::aws_keys::AwsKeys;

/// AWS refuses settings of a bucket without a digest of their text.
const CHECKSUM: &str = "x-amz-checksum-sha256";

/// The scope of a signature.
#[derive(Debug, Clone, Copy)]
pub struct AwsScope<'s> {
    pub service: &'static str,
    pub region: &'s str,
    pub time: Timestamp,
}

impl AwsScope<'_> {
    pub const S3: &'static str = "s3";
    pub const ROUTE53: &'static str = "route53";
}

/// Signs a request; `None` if the keys have characters that no header may have.
pub fn sign(request: &mut Request<String>, keys: &AwsKeys, scope: AwsScope<'_>) -> Option<()> {
    let mut settings = SigningSettings::default();
    if scope.service == AwsScope::S3 {
        if !request.body().is_empty() {
            let digest = STANDARD.encode(Sha256::digest(request.body()));
            request.headers_mut().insert(CHECKSUM, HeaderValue::from_str(&digest).ok()?);
        }
        // S3 is the only service whose paths are signed as they are sent.
        settings.percent_encoding_mode = PercentEncodingMode::Single;
        settings.uri_path_normalization_mode = UriPathNormalizationMode::Disabled;
        settings.payload_checksum_kind = PayloadChecksumKind::XAmzSha256;
    }
    let token = keys.token.as_ref().map(|token| token.expose_secret().to_owned());
    let secret = keys.secret.expose_secret();
    let identity = Credentials::new(keys.id.as_str(), secret, token, None, "streamfleet").into();
    let params = SigningParams::builder()
        .identity(&identity)
        .region(scope.region)
        .name(scope.service)
        .time(SystemTime::from(scope.time))
        .settings(settings)
        .build()
        .ok()?
        .into();
    let url = request.uri().to_string();
    let headers =
        request.headers().iter().filter_map(|(name, value)| Some((name.as_str(), value.to_str().ok()?)));
    let body = SignableBody::Bytes(request.body().as_bytes());
    let signable = SignableRequest::new(request.method().as_str(), url, headers, body).ok()?;
    let (instructions, _) = signature(signable, &params).ok()?.into_parts();
    instructions.apply_to_request_http1x(request);
    Some(())
}
