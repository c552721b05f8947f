//! Makes buckets for tiered storage at services with the S3 API. A bucket that exists is never changed, unless its
//! making was interrupted, and no bucket is ever deleted.

mod fault;

use std::time::Duration;

use http::header::HOST;
use http::{HeaderMap, Method, Request, StatusCode, Uri};
use http_body_util::Full;
use hyper::body::Bytes;
use jiff::Timestamp;
use secrecy::SecretString;

use super::aws::{AwsScope, sign};
use super::https::{HttpsClient, HttpsLimits, roots_of_host};
use crate::catalog::BucketPlace;
use crate::config::AddressRange;
use crate::spec::aws_keys::AwsKeys;
pub use fault::BucketError;
use fault::{Answered, BucketFault};

/// Answers are empty, describe one error, or list buckets, of which an account has at most 10,000.
const LIMITS: HttpsLimits = HttpsLimits { time: Duration::from_secs(10), size: 2 << 20 };

/// The region in which AWS takes no name of a region.
const FIRST_REGION: &str = "us-east-1";

/// A bucket at its service.
pub struct BucketClient<'p> {
    place: &'p BucketPlace,
    endpoint: Uri,
    keys: AwsKeys,
    https: HttpsClient,
}

/// The result of looking for a bucket by its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BucketLook {
    Missing,
    /// There is one. Only an attempt to make it tells whose it is.
    Taken,
    /// The keys may not look.
    Hidden,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BucketOutcome {
    Made,
    /// The account has it already.
    Known,
}

impl<'p> BucketClient<'p> {
    /// # Errors
    /// If the credentials or the endpoint can't be used.
    pub fn new(
        place: &'p BucketPlace,
        credentials: &SecretString,
        allowed: &[AddressRange],
    ) -> Result<BucketClient<'p>, BucketError> {
        let failed = |fault| BucketError::new(place, fault);
        let keys = AwsKeys::parse(credentials).map_err(|_| failed(BucketFault::NoKeys))?;
        let endpoint: Uri = place.endpoint.parse().map_err(|_| failed(BucketFault::NoUrl))?;
        let https = HttpsClient::new(roots_of_host(), allowed, LIMITS);
        Ok(BucketClient { place, endpoint, keys, https: https.map_err(|fault| failed(fault.into()))? })
    }

    /// Looks whether there is a bucket of that name.
    ///
    /// # Errors
    /// If the service doesn't answer, or the bucket is in another region.
    pub async fn look(&self) -> Result<BucketLook, BucketError> {
        let answered = self.send(Method::HEAD, &self.place.name, String::new()).await?;
        let region = answered.region.as_deref().filter(|region| *region != self.place.region);
        match answered.status {
            StatusCode::NOT_FOUND => Ok(BucketLook::Missing),
            StatusCode::OK if region.is_none() => Ok(BucketLook::Taken),
            StatusCode::FORBIDDEN if region.is_none() => Ok(BucketLook::Hidden),
            StatusCode::OK
            | StatusCode::FORBIDDEN
            | StatusCode::MOVED_PERMANENTLY
            | StatusCode::BAD_REQUEST
                if let Some(region) = region =>
            {
                Err(self.failed(BucketFault::Region(Some(region.to_owned()))))
            }
            // The body of an answer to HEAD is empty, and the attempt to make the bucket tells why.
            StatusCode::BAD_REQUEST => Ok(BucketLook::Hidden),
            _ => Err(self.failed(answered.fault())),
        }
    }

    /// Makes the bucket, unless the account has it.
    ///
    /// # Errors
    /// If it is somebody else's, or the service refuses.
    pub async fn create(&self, look: BucketLook) -> Result<BucketOutcome, BucketError> {
        // In its first region, AWS makes a bucket of the account again, and forgets who may read it.
        if look != BucketLook::Missing && self.place.region == FIRST_REGION {
            match self.is_own().await? {
                true => return Ok(BucketOutcome::Known),
                false if look == BucketLook::Taken => return Err(self.failed(BucketFault::Foreign)),
                false => {}
            }
        }
        let body = match self.place.region.as_str() {
            FIRST_REGION => String::new(),
            region => format!(
                "<CreateBucketConfiguration xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\"><LocationConstraint>{}\
                 </LocationConstraint></CreateBucketConfiguration>",
                escaped(region)
            ),
        };
        let answered = self.send(Method::PUT, &self.place.name, body).await?;
        match (answered.status.is_success(), answered.code.as_deref()) {
            // Not every service refuses to make a bucket of the account again.
            (true, _) if look == BucketLook::Taken => Ok(BucketOutcome::Known),
            (true, _) => Ok(BucketOutcome::Made),
            (false, Some("BucketAlreadyOwnedByYou")) => Ok(BucketOutcome::Known),
            _ => Err(self.failed(answered.fault())),
        }
    }

    /// Whether the account has the bucket.
    async fn is_own(&self) -> Result<bool, BucketError> {
        let name = &self.place.name;
        let answered = self.send(Method::GET, &format!("?prefix={name}"), String::new()).await?;
        match answered.status {
            StatusCode::OK => Ok(answered.buckets.contains(name)),
            _ => Err(self.failed(answered.fault())),
        }
    }

    /// Blocks public access to the bucket and has its objects encrypted. Returns what a service that isn't AWS doesn't
    /// know.
    ///
    /// # Errors
    /// If the service refuses.
    pub async fn protect(&self) -> Result<Vec<&'static str>, BucketError> {
        let block = "<PublicAccessBlockConfiguration xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\">\
                     <BlockPublicAcls>true</BlockPublicAcls><IgnorePublicAcls>true</IgnorePublicAcls>\
                     <BlockPublicPolicy>true</BlockPublicPolicy>\
                     <RestrictPublicBuckets>true</RestrictPublicBuckets></PublicAccessBlockConfiguration>";
        let encrypt = "<ServerSideEncryptionConfiguration xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\"><Rule>\
                       <ApplyServerSideEncryptionByDefault><SSEAlgorithm>AES256</SSEAlgorithm>\
                       </ApplyServerSideEncryptionByDefault></Rule></ServerSideEncryptionConfiguration>";
        let mut unknown = Vec::new();
        for (part, body, name) in [
            ("publicAccessBlock", block, "blocking public access"),
            ("encryption", encrypt, "encryption of its own"),
        ] {
            let target = format!("{}?{part}=", self.place.name);
            let answered = self.send(Method::PUT, &target, body.to_owned()).await?;
            match answered.status.is_success() {
                true => {}
                false if !self.place.aws && answered.is_unknown() => unknown.push(name),
                false => return Err(self.failed(answered.fault())),
            }
        }
        Ok(unknown)
    }

    fn failed(&self, fault: BucketFault) -> BucketError {
        BucketError::new(self.place, fault)
    }

    /// `target` is the bucket with what of it the request is about, or what is asked of the account.
    async fn send(&self, method: Method, target: &str, body: String) -> Result<Answered, BucketError> {
        let request = self.request(method, target, body).map_err(|fault| self.failed(fault))?;
        let (parts, body) =
            self.https.send(request).await.map_err(|fault| self.failed(fault.into()))?.into_parts();
        Ok(Answered::of(parts.status, region(&parts.headers), &body))
    }

    fn request(
        &self,
        method: Method,
        target: &str,
        body: String,
    ) -> Result<Request<Full<Bytes>>, BucketFault> {
        let authority = self.endpoint.authority().ok_or(BucketFault::NoUrl)?.as_str();
        let base = self.endpoint.path().trim_end_matches('/');
        // Every service knows buckets in the path; in the host name, it needs a certificate for each of them.
        let url = format!("https://{authority}{base}/{target}");
        let mut request = Request::builder()
            .method(method)
            .uri(url)
            .header(HOST, authority)
            .body(body)
            .map_err(|_| BucketFault::NoUrl)?;
        let scope = AwsScope { service: AwsScope::S3, region: &self.place.region, time: Timestamp::now() };
        sign(&mut request, &self.keys, scope).ok_or(BucketFault::NoKeys)?;
        Ok(request.map(Full::from))
    }
}

fn region(headers: &HeaderMap) -> Option<String> {
    let region = headers.get("x-amz-bucket-region")?.to_str().ok()?;
    Some(region.to_owned()).filter(|region| fault::is_word(region))
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}
