<?php

declare(strict_types=1);

// The build before a deploy: compiles the container and the templates by rendering the page once.

require __DIR__ . '/public/index.php';
