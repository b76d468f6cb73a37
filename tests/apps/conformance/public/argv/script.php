<?php

declare(strict_types=1);

echo json_encode([$argc ?? null, $argv ?? null, $_SERVER['argc'] ?? null, $_SERVER['argv'] ?? null]), "\n";
