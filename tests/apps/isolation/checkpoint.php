<?php

/** A plain script with a checkpoint. */

declare(strict_types=1);

require __DIR__ . '/src/Suite.php';

$suite = Isolation\Suite::load();
Samovar\checkpoint();
$suite->answer();
