<?php

/** A resident application, rolled back after each request. */

declare(strict_types=1);

require __DIR__ . '/src/Suite.php';

$suite = Isolation\Suite::load();
Samovar\serve($suite->answer(...), 1);
