<?php

// Compiled by the console first.
return [PHP_SAPI, php_sapi_name(), defined('STDIN'), constant('PHP_SAPI')];
