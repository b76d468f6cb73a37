<?php

/** No rollback: what an item leaks is real. */

declare(strict_types=1);

require __DIR__ . '/src/Suite.php';

$suite = Isolation\Suite::load();
Samovar\serve($suite->answer(...), 0);
