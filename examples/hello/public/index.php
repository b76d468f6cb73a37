<?php

declare(strict_types=1);

/* A plain script: it runs from its first line for each request, as under php-fpm. */
$name = $_GET['name'] ?? 'world';
?>
<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Samovar</title>
<link rel="stylesheet" href="/style.css">
<main>
    <h1>Hello, <?= htmlspecialchars((string) $name) ?>!</h1>
    <p>PHP <?= PHP_VERSION ?> as <code><?= PHP_SAPI ?></code>, process <?= getmypid() ?>,
        request <code><?= htmlspecialchars($_SERVER['REQUEST_ID'] ?? '–') ?></code>.</p>
    <form>
        <label>Your name <input name="name" value="<?= htmlspecialchars((string) $name) ?>"></label>
        <button>Greet</button>
    </form>
    <p>This page is <code>examples/hello/public/index.php</code>. Change it and load it again.
        Next: <code>samovar serve --help</code>, and the guide in <code>docs/</code>.</p>
</main>
