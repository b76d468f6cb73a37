// What C is told once, before PHP starts: C's name of each option, its type, and where it comes from.
//
// Read twice: build.rs writes the struct for C (`samovar_options` in from_rust.h), src/php_options.rs has Rust's and fills
// it. Types: Text (a string with an end that lives as long as the process), bool, usize, u64.
php_options! { |options, frankenphp_worker|
    /// of the cache behind apcu_fetch() and its like, 0: there are none
    apcu_bytes: u64 = options.apcu_bytes;
    /// instead of the built-in php.ini; NULL: that one
    ini_file: Text = Text::of_path(options.php_ini.as_deref())?;
    /// lines `key=value`, stronger than every file
    ini_entries: Text = Text::of(ini::lines(&options.define))?;
    /// the front controller, "" for none
    app_script: Text = Text::of_path(options.app.as_deref())?.or_empty();
    /// the document root
    root: Text = Text::of_path(Some(&options.root))?;
    /// a file whose first inclusion ends in a checkpoint, "" for none
    checkpoint_after: Text = Text::of_path(options.checkpoint_after.as_deref())?.or_empty();
    /// what each request below a checkpoint includes first, "" for none
    checkpoint_resume: Text = Text::of_path(options.checkpoint_resume.as_deref())?.or_empty();
    /// of PHP's heap, after which a resident worker rolls back
    growth_bytes_max: u64 = options.growth_bytes_max;
    /// tasks of one request in flight at once
    tasks_max: usize = options.tasks_max;
    /// of a task's stack
    task_stack_bytes: u64 = options.task_stack_bytes;
    /// requests of a FrankenPHP worker script, 0: never
    rollback_every: usize = options.rollback_every;
    /// the front controller is such a script
    frankenphp_worker: bool = frankenphp_worker;
    /// frankenphp_log() writes messages below the level of information
    log_debug: bool = options.debug_log;
    /// a folder for censuses of what requests leave behind, "" for none
    census: Text = Text::of_path(options.census.as_deref())?.or_empty();
    /// PHP tells of each call, for call graphs of requests
    traces: bool = options.traces;
    /// there are workers that do so, of which a request may be one
    may_trace: bool = options.may_trace;
    /// PHP_SAPI
    sapi_name: Text = Text::of(options.sapi_name.as_str())?;
    /// $_SERVER['SERVER_SOFTWARE']
    server_software: Text = Text::of(options.server_software.as_str())?;
}
