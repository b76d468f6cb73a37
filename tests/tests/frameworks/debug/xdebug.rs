//! Xdebug.
