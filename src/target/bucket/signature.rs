//! The signature of a request (AWS Signature Version 4), with the digest of its body.

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
use secrecy::ExposeSecret as _;
use sha2::{Digest as _, Sha256};

use super::fault::BucketFault;
use super::login::BucketLogin;

/// AWS refuses settings of a bucket without a digest of their text.
const CHECKSUM: &str = "x-amz-checksum-sha256";

pub fn sign(request: &mut Request<String>, login: &BucketLogin, region: &str) -> Result<(), BucketFault> {
    if !request.body().is_empty() {
        let digest = STANDARD.encode(Sha256::digest(request.body()));
        let digest = HeaderValue::from_str(&digest).map_err(unsigned)?;
        request.headers_mut().insert(CHECKSUM, digest);
    }
    let token = login.token.as_ref().map(|token| token.expose_secret().to_owned());
    let secret = login.secret.expose_secret();
    let identity = Credentials::new(login.key.as_str(), secret, token, None, "streamfleet").into();
    let mut settings = SigningSettings::default();
    // S3 is the only service whose paths are signed as they are sent.
    settings.percent_encoding_mode = PercentEncodingMode::Single;
    settings.uri_path_normalization_mode = UriPathNormalizationMode::Disabled;
    settings.payload_checksum_kind = PayloadChecksumKind::XAmzSha256;
    let params = SigningParams::builder()
        .identity(&identity)
        .region(region)
        .name("s3")
        .time(SystemTime::now())
        .settings(settings)
        .build()
        .map_err(unsigned)?
        .into();
    let url = request.uri().to_string();
    let headers =
        request.headers().iter().filter_map(|(name, value)| Some((name.as_str(), value.to_str().ok()?)));
    let body = SignableBody::Bytes(request.body().as_bytes());
    let signable = SignableRequest::new(request.method().as_str(), url, headers, body).map_err(unsigned)?;
    let (instructions, _) = signature(signable, &params).map_err(unsigned)?.into_parts();
    instructions.apply_to_request_http1x(request);
    Ok(())
}

/// The keys have characters that no header may have.
fn unsigned(_: impl std::error::Error) -> BucketFault {
    BucketFault::NoKeys
}
