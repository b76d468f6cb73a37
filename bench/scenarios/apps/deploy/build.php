<?php

declare(strict_types=1);

// What a build does before a deploy: the container and the templates are compiled, by showing the page once.

require __DIR__ . '/public/index.php';
