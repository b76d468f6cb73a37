<?php

/**
 * Serves the scripts of ../conformance below a checkpoint. php-fpm does not have
 * Samovar\checkpoint() and runs this whole file for each request. The responses must be equal.
 */

declare(strict_types=1);

if (function_exists('Samovar\checkpoint')) {
    Samovar\checkpoint();
}

require dirname(__DIR__) . '/conformance/public/' . basename(explode('?', $_SERVER['REQUEST_URI'], 2)[0]);
