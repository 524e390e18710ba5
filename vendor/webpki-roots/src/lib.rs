//! No certificate authority is trusted that nobody has named. `mysql` trusts those of this list beside `ssl-ca`, so that
//! with Mozilla's list anyone with a certificate for any host would pass as a server that is verified by its authority.

use pki_types::{Der, TrustAnchor};

/// Nobody: rustls refuses an empty list, and the one of this list has no key, by which nothing is ever signed.
pub const TLS_SERVER_ROOTS: &[TrustAnchor<'static>] = &[TrustAnchor {
    subject: Der::from_slice(b"nobody"),
    subject_public_key_info: Der::from_slice(b""),
    name_constraints: None,
}];
