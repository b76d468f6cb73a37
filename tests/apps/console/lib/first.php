<?php

// Compiled by a request first.
return [PHP_SAPI, php_sapi_name(), defined('STDIN'), constant('PHP_SAPI')];
