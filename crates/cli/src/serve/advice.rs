//! What a person might have meant by another root.

use samovar_config::Settings;
use samovar_front::private;

/// What is served was probably not meant to be.
pub(super) fn advise(settings: &Settings) {
    let root = &settings.root;
    if !private::is_project(root) {
        return;
    }
    let public = private::public_folder(root);
    // An application whose pages lie beside its `composer.json` has no other folder to name.
    if public.is_none() && root.join("index.php").is_file() {
        tracing::info!(root = %root.display(), "what a project keeps beside its pages is not served");
        return;
    }
    let folder = public.unwrap_or_else(|| root.join("public"));
    tracing::warn!(
        root = %root.display(),
        "this looks like a project's folder: name its public folder (hint: `samovar serve {}`)",
        folder.display()
    );
}
