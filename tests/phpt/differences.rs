//! Tests of php-src that a web server answers otherwise, with the reason.

/// Names, and why they differ under php-fpm as well.
pub(crate) const EXPECTED_DIFFERENCES: &[(&str, &str)] = &[];
