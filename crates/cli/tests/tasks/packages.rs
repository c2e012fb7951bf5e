//! Agents install packages from files beside them: no registry is asked.

use crate::transcript::{Agent, Check};

/// Makes a wheel without build tools: an archive with three files of metadata.
const MAKE_WHEEL: &str = r#"
import zipfile
name, info = "greet_tool", "greet_tool-1.4.0.dist-info"
files = {
    f"{name}/__init__.py": "def main():\n    print('greetings from', __name__)\n",
    f"{info}/METADATA": "Metadata-Version: 2.1\nName: greet-tool\nVersion: 1.4.0\n",
    f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: hand\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    f"{info}/entry_points.txt": "[console_scripts]\ngreet = greet_tool:main\n",
    f"{info}/RECORD": "",
}
with zipfile.ZipFile("wheels/greet_tool-1.4.0-py3-none-any.whl", "w") as wheel:
    for path, content in files.items():
        wheel.writestr(path, content)
"#;

async fn make_wheel(agent: &mut Agent<'_>) -> Check {
    agent.write("wheels/make.py", MAKE_WHEEL).await?;
    agent.run("python3 wheels/make.py && ls wheels").await
}

/// Installs for the user, since the machine's own Python is Debian's.
pub async fn install_a_wheel_with_pip(agent: &mut Agent<'_>) -> Check {
    make_wheel(agent).await?;
    let pip = "pip install --no-index --find-links wheels --disable-pip-version-check --quiet";
    agent.run(&format!("{pip} greet-tool 2>&1 | grep -o 'error: [a-z-]*'")).await?;
    agent.run(&format!("{pip} --user --break-system-packages greet-tool")).await?;
    agent.run("greet; command -v greet; pip list --user --format=freeze --disable-pip-version-check").await?;
    agent.run(&format!("{pip} --user --break-system-packages no-such-thing 2>&1 | tail -1")).await?;
    agent.run("pip uninstall --yes --quiet --break-system-packages greet-tool; greet").await
}

/// Has the wheel in it, and nowhere else.
pub async fn make_a_virtual_environment(agent: &mut Agent<'_>) -> Check {
    make_wheel(agent).await?;
    let pip = "pip install --no-index --find-links wheels --quiet --disable-pip-version-check";
    agent.run("python3 -m venv env && ls env && readlink env/bin/python3").await?;
    agent.run(&format!(". env/bin/activate && {pip} greet-tool && greet && command -v greet")).await?;
    agent.run("env/bin/python -c 'import sys; print(sys.prefix, sys.prefix != sys.base_prefix)'").await?;
    agent.run("python3 -c 'import greet_tool' 2>&1 | tail -1").await
}

/// Makes a repository in a folder: a package with a script that adds a user, and another package
/// that it needs.
const MAKE_REPOSITORY: &str = r#"set -e
mkdir -p tree/DEBIAN tree/usr/bin lib/DEBIAN lib/usr/share/tea repository
cat > lib/DEBIAN/control <<END
Package: tea-data
Version: 1.0
Architecture: all
Maintainer: A <a@example.com>
Description: what tea there is
END
echo oolong > lib/usr/share/tea/kinds
cat > tree/DEBIAN/control <<END
Package: tea
Version: 2.1-1
Architecture: all
Depends: tea-data (>= 1.0), bash
Maintainer: A <a@example.com>
Description: a program with a user of its own
END
cat > tree/DEBIAN/postinst <<'END'
#!/bin/sh
set -e
useradd --system --no-create-home --home-dir /var/lib/tea tea
install -d -o tea -g tea -m 750 /var/lib/tea
END
printf '#!/bin/sh\nid -un; cat /usr/share/tea/kinds\n' > tree/usr/bin/tea
chmod 755 tree/DEBIAN/postinst tree/usr/bin/tea
dpkg-deb --root-owner-group --build lib repository/tea-data.deb
dpkg-deb --root-owner-group --build tree repository/tea.deb
cd repository
for file in *.deb; do
    dpkg-deb --field "$file"
    echo "Filename: ./$file"
    echo "Size: $(stat --format=%s "$file")"
    echo "SHA256: $(sha256sum "$file" | cut -d' ' -f1)"
    echo
done > Packages
chmod -R a+rX /workspace
rm -f /etc/apt/sources.list /etc/apt/sources.list.d/*
echo "deb [trusted=yes] file:/workspace/repository ./" > /etc/apt/sources.list
"#;

/// As root of an image.
pub async fn install_a_package_with_apt(agent: &mut Agent<'_>) -> Check {
    agent.write("make.sh", MAKE_REPOSITORY).await?;
    agent
        .run_all(&[
            "id -u; bash make.sh",
            "apt-get update --quiet=2 && apt-cache policy tea | head -3",
            "apt-get install --yes --quiet=2 tea 2> /dev/null | tr -d '\\r' | grep -E '^(Unpacking|Setting)'",
            "dpkg --status tea | grep Status; dpkg --verify tea tea-data; stat --format='%U:%G %a' /var/lib/tea",
            "tea; su --shell /bin/sh tea --command tea",
            "chown 33:33 make.sh && stat --format=%u:%g make.sh",
            "apt-get install --yes --quiet=2 coffee",
            "apt-get purge --yes --quiet=2 tea 2> /dev/null | grep -c Removing; command -v tea",
        ])
        .await
}
