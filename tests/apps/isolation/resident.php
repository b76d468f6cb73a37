<?php

/** Without rollback, the leaks of the items are real. */

declare(strict_types=1);

require __DIR__ . '/src/Suite.php';

$suite = Isolation\Suite::load();
Samovar\serve($suite->answer(...), 0);
