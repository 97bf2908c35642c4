<?php
// A WordPress site made with WordPress's own functions: `install`, `write` (prints the comments that guests see on each
// post, as JSON), `export` (prints the download from Tools > Export).
//
// Usage: wordpress.php FOLDER SOCKET install|write|export, with WordPress's folder and the database's socket.

[, $folder, $socket, $step] = $argv;

define('ABSPATH', "$folder/");
define('DB_NAME', 'wordpress');
define('DB_USER', 'root');
define('DB_PASSWORD', '');
define('DB_HOST', "localhost:$socket");
define('DB_CHARSET', 'utf8mb4');
define('WP_HTTP_BLOCK_EXTERNAL', true);
define('DISABLE_WP_CRON', true);
if ($step === 'install') {
    define('WP_INSTALLING', true);
}
$table_prefix = 'wp_';
$_SERVER += ['HTTP_HOST' => 'blog.example', 'SERVER_PROTOCOL' => 'HTTP/1.1', 'REQUEST_METHOD' => 'GET', 'REMOTE_ADDR' => '198.51.100.7'];
require ABSPATH . 'wp-settings.php';
require ABSPATH . 'wp-admin/includes/admin.php';
add_filter('pre_wp_mail', '__return_true');

// Posts a comment as the form below a post does.
function comment(int $post, string $name, string $content, array $more = []): int
{
    $data = $more + [
        'comment_post_ID' => $post,
        'comment_author' => $name,
        'comment_author_email' => '',
        'comment_author_url' => '',
        'comment_content' => $content,
        'comment_type' => 'comment',
        'comment_parent' => 0,
        'comment_agent' => 'Mozilla/5.0',
    ];
    $id = wp_new_comment(wp_slash($data), true);
    if (is_wp_error($id)) {
        throw new Exception($id->get_error_message());
    }
    return $id;
}

function post(string $title): int
{
    return wp_insert_post(['post_title' => $title, 'post_content' => 'A post.', 'post_status' => 'publish', 'comment_status' => 'open'], true);
}

function install(): void
{
    require ABSPATH . 'wp-admin/includes/upgrade.php';
    wp_install('Blog', 'admin', 'admin@blog.example', true, '', 'password');
    update_option('timezone_string', 'Europe/Berlin');
    // Publishes comments without approval.
    update_option('comment_previously_approved', 0);
    update_option('comment_max_links', 0);
}

function write(): array
{
    add_filter('wp_is_comment_flood', '__return_false', 20);
    $admin = get_user_by('login', 'admin');
    $post = post('Tea & <em>cake</em>');
    $ada = ['comment_author_email' => 'ada@blog.example', 'comment_author_url' => 'https://ada.example'];
    $text = "Hello <strong>world</strong>, 1 < 2 & 3\nsecond line, https://blog.example/a_b?x=1&y=2.\n\n*no* emphasis_ <a href=\"https://b.example\" title=\"t\">link</a>";
    $top = comment($post, "Ada \"Countess\" O'Neill & Co", $text, $ada);
    $reply = comment($post, 'Bob', "<blockquote>second line</blockquote>\nyes <code>if (a < b) { c(); }</code>", ['comment_parent' => $top]);
    $below = comment($post, 'Ada', '<script>alert(1)</script>1. no list', $ada + ['comment_parent' => $reply]);
    comment($post, 'admin', 'By the house <img src="https://images.example/cat.png">', [
        'comment_parent' => $below, 'user_id' => $admin->ID, 'comment_author_email' => $admin->user_email,
    ]);
    comment($post, '', 'Nobody said so', ['comment_date' => '2014-07-14 19:32:12', 'comment_date_gmt' => '2014-07-14 17:32:12']);
    $edited = comment($post, '汪小喵', '# no heading :) ' . "\u{1F389}");
    wp_update_comment(['comment_ID' => $edited, 'comment_content' => '# still no heading ' . "\u{1F389}"]);
    $other = post('Another');
    comment($other, 'Bob', '<b>unclosed <i>and crossed</b> tags');

    $held = post('With comments that nobody sees');
    wp_set_comment_status(comment($held, 'Eve', 'waits'), 'hold');
    wp_set_comment_status(comment($held, 'Spammer', 'pills'), 'spam');
    $trashed = comment($held, 'Bob', 'thrown away');
    comment($held, 'Ada', 'to nobody', ['comment_parent' => $trashed]);
    wp_trash_comment($trashed);
    comment($held, 'Another blog', '[&#8230;] a link [&#8230;]', ['comment_type' => 'pingback']);
    return ['compared' => [1, $post, $other], 'held' => $held];
}

// Returns a post's comments below a parent, as a theme shows them.
function shown(int $post, int $parent = 0): array
{
    $comments = get_comments(['post_id' => $post, 'parent' => $parent, 'status' => 'approve', 'type' => 'comment', 'orderby' => 'comment_date_gmt', 'order' => 'ASC']);
    return array_map(fn ($comment) => [
        'name' => html_entity_decode(get_comment_author($comment), ENT_QUOTES | ENT_HTML5),
        'html' => apply_filters('comment_text', get_comment_text($comment), $comment, []),
        'created_at' => mysql2date('c', $comment->comment_date_gmt . 'Z', false),
        'replies' => shown($post, (int) $comment->comment_ID),
    ], $comments);
}

switch ($step) {
    case 'install':
        install();
        break;
    case 'write':
        $site = write();
        foreach ($site['compared'] as $post) {
            $site['posts'][$post] = shown($post);
        }
        echo json_encode($site, JSON_THROW_ON_ERROR);
        break;
    case 'export':
        require ABSPATH . 'wp-admin/includes/export.php';
        export_wp(['content' => 'all']);
        break;
}
