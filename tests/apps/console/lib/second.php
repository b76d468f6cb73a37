<?php

// Compiled first by the console.
return [PHP_SAPI, php_sapi_name(), defined('STDIN'), constant('PHP_SAPI')];
