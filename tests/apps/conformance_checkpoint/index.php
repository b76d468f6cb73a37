<?php

/**
 * The scripts of ../conformance below a checkpoint. php-fpm, which does not know Samovar\checkpoint(), runs this whole
 * file for each request: the answers are to be equal.
 */

declare(strict_types=1);

if (function_exists('Samovar\checkpoint')) {
    Samovar\checkpoint();
}

require dirname(__DIR__) . '/conformance/public/' . basename(explode('?', $_SERVER['REQUEST_URI'], 2)[0]);
