<?php

/* The page that the package's settings serve until `root` names a site. */

declare(strict_types=1);

$extensions = get_loaded_extensions();
sort($extensions, SORT_FLAG_CASE | SORT_STRING);
$text = static fn (string $value): string => htmlspecialchars($value);
?>
<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Samovar</title>
<style>
    body { font: 1rem/1.6 system-ui, sans-serif; max-width: 42rem; margin: 3rem auto; padding: 0 1rem; }
    code { background: #8882; padding: .1em .3em; border-radius: .2em; }
</style>
<h1>Samovar runs PHP <?= $text(PHP_VERSION) ?></h1>
<p>Set <code>root</code> in <code>/etc/samovar/samovar.toml</code> to the folder of your site, then run
    <code>systemctl reload samovar</code>.</p>
<p><code>samovar init</code>, run in the folder of a project, writes settings that fit it.</p>
<h2>Extensions</h2>
<p><?= $text(implode(', ', $extensions)) ?></p>
